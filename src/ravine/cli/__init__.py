"""The command line: `arguments` are parsed, `options` are checked before the data is read, `commands` run."""
