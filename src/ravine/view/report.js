"use strict";
const nodes = Array.from(document.querySelectorAll(".tree details[id]"));

function openAll(open) {
  for (const node of nodes) node.open = open;
}

// a link to a node opens it and moves the focus to it
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target || target.tagName !== "DETAILS") return;
  target.open = true;
  target.querySelector("summary").focus({ preventScroll: true });
  target.scrollIntoView({ block: "start" });
}

document.getElementById("open-all").addEventListener("click", () => openAll(true));
document.getElementById("close-all").addEventListener("click", () => openAll(false));
window.addEventListener("hashchange", openTarget);
for (const link of document.querySelectorAll('a[href^="#node-"]')) {
  link.addEventListener("click", () => { if (link.hash === location.hash) openTarget(); });
}
openTarget();

// the map shows the split that was opened last: other rows are dim, and its line is drawn where the map shows it
const map = document.querySelector("svg.map");
const note = document.getElementById("map-note");
const all = nodes[0]; // what the map shows at first: the first split
let onMap = null;
function showOnMap(node) {
  onMap = node;
  const leaves = node ? new Set(node.dataset.leaves.split(" ")) : null;
  for (const part of map.querySelectorAll("[data-leaf]")) {
    part.classList.toggle("dim", leaves !== null && !leaves.has(part.dataset.leaf));
  }
  const number = node ? node.id.slice(5) : "";
  for (const line of map.querySelectorAll(".line")) line.classList.toggle("on", line.dataset.node === number);
  if (!note) return;
  const isSplit = node && node.dataset.leaves.includes(" ");
  const isShown = note.dataset.shown.split(" ").includes(number);
  note.textContent = !isSplit ? "" : isShown ? `The dashed line is the ${node === all ? "first split" : "split that is open"}.` :
    "The split that is open has no line: " + (note.dataset.curved === "1" ? "with a kernel its boundary is curved." :
    "it divides the rows in directions that the map does not show.");
}
for (const node of nodes) {
  node.querySelector("summary").addEventListener("click", () => showOnMap(node.open ? null : node));
}
if (map) showOnMap(all);

// pictures are saved with the colors that they have on the page
const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "paint-order", "opacity", "font-size",
  "font-family", "font-weight", "text-anchor", "display"];
function save(text, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
function svgText(svg) {
  const copy = svg.cloneNode(true);
  const [from, to] = [svg, copy].map((one) => [one, ...one.querySelectorAll("*")]);
  from.forEach((one, i) => {
    const style = getComputedStyle(one);
    for (const name of STYLES) to[i].style.setProperty(name, style.getPropertyValue(name));
    to[i].removeAttribute("href");
  });
  copy.setAttribute("xmlns", "http:" + "//www.w3.org/2000/svg");
  copy.style.background = getComputedStyle(document.body).backgroundColor;
  return new XMLSerializer().serializeToString(copy);
}
for (const button of document.querySelectorAll("button.save")) {
  button.addEventListener("click", () => {
    save(svgText(button.closest("figure").querySelector("svg")), button.dataset.file);
  });
}

// a click on a heading sorts a table, again the other way; a field finds rows
function key(cell) {
  const text = cell.textContent.replaceAll(",", "").replaceAll("\u2212", "-").replace("under 1", "0.5");
  const value = parseFloat(text);
  return Number.isNaN(value) ? text.toLowerCase() : value;
}
for (const button of document.querySelectorAll("button.sort")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const table = head.closest("table");
    const down = head.getAttribute("aria-sort") !== "descending";
    for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const lines = Array.from(table.tBodies[0].rows);
    const keys = new Map(lines.map((line) => [line, key(line.cells[head.cellIndex])]));
    lines.sort((a, b) => {
      const [x, y] = [keys.get(a), keys.get(b)];
      const order = typeof x === typeof y ? (x < y ? -1 : x > y ? 1 : 0) : typeof x === "number" ? 1 : -1;
      return down ? -order : order;
    });
    table.tBodies[0].append(...lines);
  });
}
for (const field of document.querySelectorAll("input.find")) {
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const line of field.nextElementSibling.querySelectorAll("tbody tr")) {
      line.hidden = !line.textContent.toLowerCase().includes(wanted);
    }
  });
}

// printing opens everything, and restores the page afterwards
const folded = [...nodes, ...document.querySelectorAll("#words details")];
let before = null;
window.addEventListener("beforeprint", () => {
  before = { open: folded.map((part) => part.open), onMap };
  for (const part of folded) part.open = true;
  if (map) showOnMap(all);
});
window.addEventListener("afterprint", () => {
  before.open.forEach((open, i) => { folded[i].open = open; });
  if (map) showOnMap(before.onMap);
});

// up and down arrows move along the tree
document.querySelector(".tree").addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const here = nodes.findIndex((node) => node.firstElementChild === event.target);
  if (step === undefined || here < 0) return;
  const next = nodes[here + step];
  if (next) {
    next.firstElementChild.focus();
    event.preventDefault();
  }
});
