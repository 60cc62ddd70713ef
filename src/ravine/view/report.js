"use strict";
const nodes = Array.from(document.querySelectorAll(".tree details"));

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

// printing opens everything, and restores the page afterwards
let before = [];
window.addEventListener("beforeprint", () => {
  before = nodes.map((node) => node.open);
  openAll(true);
});
window.addEventListener("afterprint", () => before.forEach((open, i) => { nodes[i].open = open; }));

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
