"""Models, trees and checkpoints as files."""
