"use strict";
// The page of the explorer. Names come from the data, so they are only ever set as text.

const by = (id) => document.getElementById(id);
const SVG = "http:" + "//www.w3.org/2000/svg";
const count = (n) => Number(n.toPrecision(12)).toLocaleString("en-US");
const few = (x) => (x === null ? "" : Math.abs(x) >= 1000 ? Math.round(x).toLocaleString("en-US") : String(Number(x.toPrecision(3))));
const many = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;
const percent = (x) => Math.round(100 * x || 0) + " %";

let state = null;       // what the server says about the tree
let places = null;      // the rows of the map
let node = 0;           // the node that is shown
let shown = null;       // what the server says about it
let chosen = new Set(); // row numbers
let ticked = [];        // clusters to merge
let moved = null;       // the place to which the threshold is being moved, among those of the node

// --- asking the server ---

async function ask(path, body) {
  const options = body === undefined ? {} :
    { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    throw new Error("The explorer does not answer. It stops when its terminal is closed; the work is saved.");
  }
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error || "The request was refused.");
  return answer;
}

// an error, or a note about something that was done
function say(text, isNote = false) {
  by("message").textContent = text;
  by("message").classList.toggle("note", isNote);
  by("message").hidden = !text;
}

async function guarded(work, words = "Working …") {
  by("busy").textContent = words;
  try {
    await work();
  } catch (error) {
    say(error.message);
  }
  by("busy").textContent = "";
}

function act(action, args = {}) {
  return guarded(async () => {
    const answer = await ask("api/act", { action, arguments: args });
    say(answer.notes.join(" "), true);
    await show(answer);
  });
}

async function show(answer) {
  const before = state;
  state = answer;
  if (!before || before.mapped !== state.mapped) places = await ask("api/map");
  if (node >= state.nodes.length) node = 0;
  ticked = [];
  drawState();
  await choose(node);
}

async function choose(number) {
  node = number;
  moved = null;
  shown = await ask("api/node/" + node);
  drawTree();
  drawNode();
  drawMap();
}

// --- making elements ---

function make(tag, attributes = {}, ...children) {
  const inSvg = ["svg", "g", "rect", "text", "path", "circle", "line", "title"].includes(tag);
  const element = inSvg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function nameOf(label) {
  const cluster = state.clusters.find((one) => one.label === label);
  return cluster && cluster.name ? cluster.name : "cluster " + label;
}

// a name with places where a line may break
function breakable(text) {
  return String(text).split(/(?<=[_/.=-])/).flatMap((part, i) => (i ? [make("wbr"), part] : [part]));
}

// what the user's own function has made of a row; scripts in it do not run, by the policy of the page
function trusted(html) {
  const box = make("span");
  box.innerHTML = html;
  return box;
}

function fillTable(table, caption, heads, rows) {
  const head = make("tr", {}, ...heads.map(([title, number]) => make("th", { scope: "col", class: number ? "n" : false }, ...breakable(title))));
  const lines = rows.map((cells) => make("tr", {}, ...cells.map((cell, i) =>
    i === 0 ? make("th", { scope: "row" }, ...(typeof cell === "string" ? breakable(cell) : [cell])) : make("td", { class: heads[i][1] ? "n" : false }, cell))));
  table.replaceChildren(make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...lines));
}

// --- the whole ---

function drawState() {
  by("title").textContent = state.title || "ravine explorer";
  document.title = (state.title ? state.title + " – " : "") + "ravine explorer";
  const n = state.clusters.length;
  by("lead").textContent = `${count(state.n_rows)} rows in ${many(n, "cluster")}` + (state.n_far ? `; ${count(state.n_far)} far from all others, not counted` : "");
  by("undo").disabled = !state.undo;
  by("redo").disabled = !state.redo;
  by("cut").max = state.most_clusters;
  by("cut").disabled = state.most_clusters < 2;
  by("cut").value = n;
  by("cut-value").textContent = many(n, "cluster");
  by("sql").hidden = state.mapped;
  by("code").textContent = state.code.flat().join("\n");
  by("code").scrollTop = by("code").scrollHeight;
  by("copy").textContent = "Copy the script";
  const n_marks = state.marks.length;
  by("marks").textContent = n_marks ? `${many(n_marks, "row")} ${n_marks === 1 ? "is" : "are"} marked.` : "";
  by("unmark").hidden = !n_marks;
  drawClusters();
}

function drawClusters() {
  by("clusters").replaceChildren(...state.clusters.map((cluster) => {
    const tick = make("input", { type: "checkbox", "aria-label": "Tick " + nameOf(cluster.label),
      onchange: (event) => {
        ticked = event.target.checked ? [...ticked, cluster.label] : ticked.filter((one) => one !== cluster.label);
        by("merge").disabled = ticked.length !== 2;
      } });
    const color = make("span", { class: "color" });
    color.style.background = cluster.color;
    const name = make("input", { type: "text", placeholder: "cluster " + cluster.label, maxlength: 80,
      "aria-label": "Name of cluster " + cluster.label,
      onchange: (event) => act("rename", { label: cluster.label, name: event.target.value }) });
    name.value = cluster.name;
    return make("li", { "data-label": cluster.label }, tick, color, name, make("span", { class: "n" }, count(cluster.weight)),
      make("span", { class: "words" }, cluster.words));
  }));
  by("merge").disabled = true;
}

// --- the tree: width is the number of rows, height the depth of the valley ---

function drawTree() {
  const [width, height, leaf] = [320, 260, 30];
  const nodes = state.nodes;
  const left = nodes.map(() => 0);
  const top = nodes.map(() => 0);
  nodes.forEach((one, i) => {
    if (one.left < 0) return;
    left[one.left] = left[i];
    left[one.right] = left[i] + nodes[one.left].weight;
    top[one.left] = top[one.right] = top[i] + Math.max(one.quality, 0.05);
  });
  const wide = width / nodes[0].weight;
  const high = (height - leaf) / Math.max(...top, 0.05);
  const parts = nodes.map((one, i) => {
    const cluster = state.clusters.find((c) => c.label === one.label);
    const h = cluster ? leaf : Math.max(one.quality, 0.05) * high;
    const w = Math.max(one.weight * wide, 2);
    const text = cluster ? String(one.label) : one.quality.toFixed(2);
    const name = cluster ? `${nameOf(one.label)}: ${many(one.weight, "row")}` :
      `Split of ${many(one.weight, "row")}, quality ${one.quality.toFixed(2)}`;
    const [x, y] = [left[i] * wide, top[i] * high];
    const group = make("g", { class: (cluster ? "leaf" : "inner") + (i === node ? " on" : ""), tabindex: 0, role: "button",
      "data-node": i, "aria-label": name, "aria-pressed": i === node,
      onclick: () => guarded(() => choose(i)),
      onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); guarded(() => choose(i)); } } },
      make("title", {}, name),
      make("rect", { x, y, width: w, height: h, rx: 2, fill: cluster ? cluster.color : false }));
    if (w > 9 * text.length && h > 13) {
      const label = make("text", { x: x + w / 2, y: y + h / 2 + 4, "text-anchor": "middle" }, text);
      if (cluster) label.style.fill = cluster.text;
      group.append(label);
    }
    return group;
  });
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.node : undefined;
  by("tree").setAttribute("viewBox", `0 0 ${width} ${height}`);
  by("tree").replaceChildren(...parts);
  if (focused !== undefined && parts[focused]) parts[focused].focus();
}

// --- one node ---

function drawNode() {
  const here = state.nodes[node];
  const isLeaf = here.left < 0;
  const name = isLeaf ? nameOf(here.label) : "";
  by("node-title").textContent = isLeaf ? `${name[0].toUpperCase()}${name.slice(1)}: ${many(here.weight, "row")}` :
    `Split of ${many(here.weight, "row")} (node ${node})`;
  by("density-box").hidden = isLeaf;
  by("prune").hidden = isLeaf;
  by("split").textContent = isLeaf ? "Split" : "Split again";
  by("kernel").disabled = node !== 0;
  if (node !== 0) by("kernel").value = "";
  if (isLeaf) drawTraits(); else drawDrivers();
  drawExemplars();
  if (!isLeaf) drawDensity();
}

function drawTraits() {
  if (state.clusters.length === 1) { // there is nothing to compare it with
    fillTable(by("columns"), "All rows", [["column", false], ["mean", true]], shown.traits.map(([name, a]) => [name, few(a)]));
    return;
  }
  const rows = shown.traits.map(([name, a, b, d]) => [name, few(a), few(b), (d > 0 ? "+" : "") + few(Number(d.toFixed(1))) + " sd"]);
  fillTable(by("columns"), "What sets it apart from all other rows",
    [["column", false], ["here", true], ["elsewhere", true], ["difference", true]], rows);
}

function drawDrivers() {
  const rows = shown.drivers.map(([name, a, b, s]) => [name, few(a), few(b), percent(s)]);
  const caption = state.mapped ? "Where the two sides differ: the boundary is curved (a kernel), so this describes the sides" : "What drives the split";
  fillTable(by("columns"), caption, [["column", false], ["left", true], ["right", true], ["share", true]], rows);
}

function drawExemplars() {
  const { rows, html } = shown.exemplars;
  const columns = shown.exemplars.columns.slice(0, 4); // what fits beside the map
  const lines = rows.map(([number, id, ...values], i) => {
    const tick = make("input", { type: "checkbox", "aria-label": "Choose row " + id, onchange: (event) => {
      if (event.target.checked) chosen.add(number); else chosen.delete(number);
      drawChosen();
    } });
    tick.checked = chosen.has(number);
    return [make("label", {}, tick, " " + id), ...(html ? [trusted(html[i])] : []), ...values.slice(0, columns.length).map(few)];
  });
  fillTable(by("exemplars"), "Typical rows", [["row", false], ...(html ? [["shown", false]] : []), ...columns.map((name) => [name, true])], lines);
}

// --- the density, whose threshold can be dragged or moved with the arrow keys ---

const plot = { width: 430, base: 160, top: 12 };

// the scales of a curve in a picture, and the paths of its two sides around a threshold
function scaled(curve, size) {
  const [low, high] = [curve.points[0], curve.points[curve.points.length - 1]];
  const most = Math.max(...curve.density);
  const x = (p) => (p - low) / (high - low) * size.width;
  const y = (d) => size.base - d / most * (size.base - size.top);
  const pairs = curve.points.map((p, i) => [x(p), y(curve.density[i])]);
  const path = (some) => some.map(([a, b]) => `${a.toFixed(1)} ${b.toFixed(1)}`).join("L");
  const area = (some) => `M${some[0][0].toFixed(1)} ${size.base}L${path(some)}V${size.base}Z`;
  const sides = (at) => {
    const above = curve.points.findIndex((p) => p > at);
    const after = above < 0 ? pairs.length - 1 : Math.max(above, 1);
    const [[a, b], [c, d]] = [pairs[after - 1], pairs[after]];
    const middle = [x(at), b + (d - b) * (x(at) - a) / (c - a)];
    return [area([...pairs.slice(0, after), middle]), area([middle, ...pairs.slice(after)])];
  };
  return { x, low, high, sides, outline: "M" + path(pairs) };
}

function curvePaths(scale) {
  const [left, right] = scale.sides(0);
  return [make("path", { class: "l", d: left }), make("path", { class: "r", d: right }), make("path", { class: "curve", d: scale.outline })];
}

let scale = null; // of the density that is shown

function drawDensity() {
  scale = scaled(shown.curve, plot);
  moved = null;
  const { x, low, high } = scale;
  const parts = [...curvePaths(scale), make("path", { class: "axis", d: `M0 ${plot.base}H${plot.width}` })];
  for (const tick of [low, 0, high]) {
    const anchor = tick === low ? "start" : tick === high ? "end" : "middle";
    parts.push(make("text", { x: x(tick), y: plot.base + 16, "text-anchor": anchor }, few(tick)));
  }
  parts.push(make("text", { x: plot.width / 2, y: plot.base + 34, "text-anchor": "middle" }, "signed distance from the split"));
  parts.push(make("path", { class: "old", d: `M${x(0)} ${plot.top}V${plot.base}` }));
  if (shown.movable) {
    parts.push(make("g", { class: "handle", id: "handle", tabindex: 0, role: "slider", "aria-label": "Threshold", "aria-valuemin": low,
      "aria-valuemax": high, onpointerdown: drag, onkeydown: nudge },
      make("rect", { x: -14, y: 0, width: 28, height: plot.base }),
      make("path", { d: `M0 ${plot.top}V${plot.base}` }), make("circle", { cx: 0, cy: plot.top, r: 7 })));
  }
  by("drag-note").hidden = !shown.movable;
  const hadFocus = document.activeElement && document.activeElement.id === "handle";
  by("density").replaceChildren(...parts);
  drawThreshold();
  if (hadFocus && shown.movable) by("handle").focus();
}

// the threshold at the place that it was moved to, or at rest; nothing is asked of the server meanwhile
function drawThreshold() {
  const { at, left, quality } = shown.places;
  const here = moved === null ? 0 : at[moved];
  scale.sides(here).forEach((d, i) => by("density").children[i].setAttribute("d", d));
  const sides = moved === null ? [shown.left, shown.right] : [left[moved], shown.left + shown.right - left[moved]];
  const rows = `left ${count(sides[0])} | right ${count(sides[1])} rows`;
  const p = shown.p === null ? "" : `, p = ${Number(shown.p.toPrecision(2))}`;
  by("threshold-note").textContent = rows +
    (moved === null ? `, quality ${shown.quality.toFixed(2)}${p}` : `, quality about ${quality[moved].toFixed(2)}`);
  if (!shown.movable) return;
  by("handle").setAttribute("transform", `translate(${scale.x(here)})`);
  by("handle").setAttribute("aria-valuenow", here);
  by("handle").setAttribute("aria-valuetext", `${moved === null ? "not moved" : "moved by " + few(here)}: ${rows}`);
}

let drawing = false; // whether the next frame draws the threshold

function moveTo(place) {
  moved = Math.min(shown.places.at.length - 1, Math.max(0, place));
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    if (moved === null) return;
    drawThreshold();
    if (shown.line) drawOver();
  });
}

function restThreshold() {
  moved = null;
  drawThreshold();
  drawOver();
}

function moveSplit() {
  const distance = moved === null ? 0 : shown.places.at[moved];
  if (distance !== 0) act("move", { node, distance }); else restThreshold();
}

// calls `move` while the pointer is down, and at its end `done`, with whether it was not canceled
function whileDown(move, done) {
  const end = (event) => {
    window.removeEventListener("pointermove", move);
    window.removeEventListener("pointerup", end);
    window.removeEventListener("pointercancel", end);
    done(event, event.type === "pointerup");
  };
  window.addEventListener("pointermove", move);
  window.addEventListener("pointerup", end);
  window.addEventListener("pointercancel", end);
}

function drag(event) {
  event.preventDefault();
  by("handle").focus();
  const box = by("density").getBoundingClientRect();
  const last = shown.places.at.length - 1;
  whileDown((e) => moveTo(Math.round((e.clientX - box.left) / box.width * last)), (e, isDone) => { if (isDone) moveSplit(); else restThreshold(); });
}

function nudge(event) {
  const { at } = shown.places;
  const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 };
  const step = steps[event.key];
  if (step) {
    event.preventDefault();
    const from = moved === null ? Math.round(-scale.low / (scale.high - scale.low) * (at.length - 1)) : moved;
    moveTo(from + step * (event.shiftKey ? 1 : 6));
  } else if (event.key === "Enter" && moved !== null) {
    moveSplit();
  } else if (event.key === "Escape") {
    restThreshold();
  }
}

// --- the map ---

function leafColors() {
  const colorOf = new Map(state.clusters.map((one) => [one.label, one.color]));
  const inside = new Set();
  state.nodes.forEach((one, i) => { if (i === node || inside.has(one.parent)) inside.add(i); });
  return state.leaf.map((leaf) => [colorOf.get(state.nodes[leaf].label), inside.has(leaf)]);
}

function toCanvas(canvas) {
  const view = places.frame;
  const scale = canvas.width / 2 / view.half;
  return { scale, view, place: ([x, y]) => [
    Math.min(canvas.width - 6, Math.max(6, (x - view.x) * scale + canvas.width / 2)),
    Math.min(canvas.height - 6, Math.max(6, canvas.height / 2 - (y - view.y) * scale))] };
}

const still = document.createElement("canvas"); // the rows of the map, drawn once
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name);

// the rows as points; `colors` has the color of each, and whether it stands out
function drawRows(canvas, colors) {
  const context = canvas.getContext("2d");
  const { place } = toCanvas(canvas);
  const r = canvas.width / 1120 * (places.points.length > 1500 ? 4 : 6);
  context.clearRect(0, 0, canvas.width, canvas.height);
  places.points.forEach((point, i) => {
    context.globalAlpha = colors[i][1] ? 0.92 : 0.12;
    context.fillStyle = colors[i][0];
    context.beginPath();
    context.arc(...place(point), r, 0, 2 * Math.PI);
    context.fill();
  });
  context.globalAlpha = 1;
}

// squares around rows that are chosen or marked
function drawMarks(context, place) {
  const marked = new Map(state.marks);
  context.strokeStyle = context.fillStyle = ink("ink");
  context.font = "600 22px system-ui, sans-serif";
  places.numbers.forEach((number, i) => {
    const [x, y] = place(places.points[i]);
    context.lineWidth = chosen.has(number) ? 4 : 2;
    if (marked.has(number) || chosen.has(number)) context.strokeRect(x - 9, y - 9, 18, 18);
    if (marked.has(number)) context.fillText(marked.get(number), x + 11, y + 7);
  });
}

function drawMap() {
  const canvas = by("map");
  drawRows(canvas, leafColors());
  drawMarks(canvas.getContext("2d"), toCanvas(canvas).place);
  still.width = canvas.width; // which also clears it
  still.height = canvas.height;
  still.getContext("2d").drawImage(canvas, 0, 0);
  drawOver();
  by("map-note").textContent = mapNote();
}

function mapNote() {
  const n = places.points.length;
  const which = n === state.n_rows ? "All rows" : `${count(n)} of ${many(state.n_rows, "row")}, each cluster by its share`;
  const why = state.mapped ? "with a kernel its boundary is curved." : "it divides the rows in directions that the map does not show.";
  const line = !shown.curve ? "" : shown.line ? " The dashed line is the chosen split." : " The chosen split has no line: " + why;
  return `${which}; across: ${places.axes[0]}, up: ${places.axes[1]}.${line}`;
}

// what lies over the rows of the map and may move while they stay: the line of the split, the labels, a box
function drawOver(box) {
  const canvas = by("map");
  const context = canvas.getContext("2d");
  const { place, scale, view } = toCanvas(canvas);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.drawImage(still, 0, 0);
  context.strokeStyle = ink("ink");
  if (shown.line) drawLine(context, canvas, scale, view);
  if (box) context.strokeRect(...box);
  drawTags(context, place);
}

// the number of each cluster, in the middle of its rows
function drawTags(context, place) {
  context.font = "600 22px system-ui, sans-serif";
  context.textAlign = "center";
  context.lineWidth = 3;
  context.strokeStyle = ink("paper");
  for (const [label, ...middle] of state.tags) {
    const cluster = state.clusters.find((one) => one.label === label);
    const [x, y] = place(middle);
    context.beginPath();
    context.arc(x, y, 19, 0, 2 * Math.PI);
    context.fillStyle = cluster.color;
    context.fill();
    context.stroke();
    context.fillStyle = cluster.text;
    context.fillText(label, x, y + 8);
  }
  context.textAlign = "start";
}

function drawLine(context, canvas, scale, view) {
  const [a, b, rest] = shown.line;
  const c = rest - (moved === null ? 0 : shown.places.at[moved]); // a x + b y + c = 0, which moves with the threshold
  const long = 3 * view.half;
  const length = Math.hypot(a, b);
  const foot = [view.x - a * (a * view.x + b * view.y + c) / length ** 2, view.y - b * (a * view.x + b * view.y + c) / length ** 2];
  const ends = [-1, 1].map((s) => [foot[0] - s * b / length * long, foot[1] + s * a / length * long])
    .map(([x, y]) => [(x - view.x) * scale + canvas.width / 2, canvas.height / 2 - (y - view.y) * scale]);
  context.lineWidth = 4;
  context.setLineDash([14, 9]);
  context.beginPath();
  context.moveTo(...ends[0]);
  context.lineTo(...ends[1]);
  context.stroke();
  context.setLineDash([]);
}

function pointOf(event, canvas) {
  const box = canvas.getBoundingClientRect();
  return [(event.clientX - box.left) / box.width * canvas.width, (event.clientY - box.top) / box.height * canvas.height];
}

function drawChosen() {
  by("chosen").textContent = chosen.size ? `${many(chosen.size, "row")} chosen.` : "No rows chosen.";
  by("mark").disabled = !chosen.size;
  drawMap();
}

function choosing(event) {
  const canvas = by("map");
  const from = pointOf(event, canvas);
  const onMove = (e) => {
    const to = pointOf(e, canvas);
    drawOver([from[0], from[1], to[0] - from[0], to[1] - from[1]]);
  };
  whileDown(onMove, (e, isDone) => {
    if (isDone) {
      const to = pointOf(e, canvas);
      const box = [0, 1].map((j) => [Math.min(from[j], to[j]) - 5, Math.max(from[j], to[j]) + 5]);
      const { place } = toCanvas(canvas);
      chosen = new Set(places.numbers.filter((_, i) => place(places.points[i]).every((v, j) => box[j][0] <= v && v <= box[j][1])));
    }
    drawChosen();
  });
}

function hover(event) {
  const canvas = by("map");
  if (!places || !state) return;
  const at = pointOf(event, canvas);
  const { place } = toCanvas(canvas);
  let best = [14, -1];
  places.points.forEach((point, i) => {
    const [x, y] = place(point);
    const distance = Math.hypot(x - at[0], y - at[1]);
    if (distance < best[0]) best = [distance, i];
  });
  canvas.title = best[1] < 0 ? "" : `${places.ids[best[1]]}: ${nameOf(state.nodes[state.leaf[best[1]]].label)}`;
}

// --- splits ---

function wanted() {
  const number = by("number").value.trim();
  return { method: by("method").value, n_clusters: number === "auto" ? "auto" : Number(number), kernel: by("kernel").value || null };
}

// --- beginning ---

function listen() {
  by("undo").addEventListener("click", () => act("undo"));
  by("redo").addEventListener("click", () => act("redo"));
  by("cut").addEventListener("input", () => { by("cut-value").textContent = many(Number(by("cut").value), "cluster"); });
  by("cut").addEventListener("change", () => act("cut", { n_clusters: Number(by("cut").value) }));
  by("merge").addEventListener("click", () => act("merge", { a: ticked[0], b: ticked[1] }));
  by("prune").addEventListener("click", () => act("prune", { node }));
  by("split-form").addEventListener("submit", (event) => { event.preventDefault(); act("split", { node, ...wanted() }); });
  by("mark").addEventListener("click", () => act("mark", { numbers: [...chosen], label: Number(by("class").value) })
    .then(() => { chosen = new Set(); drawChosen(); }));
  by("unmark").addEventListener("click", () => act("mark", { numbers: state.marks.map(([row]) => row), label: -1 }));
  by("copy").addEventListener("click", () => guarded(() => navigator.clipboard.writeText(state.script).then(() => { by("copy").textContent = "Copied"; })));
  by("map").addEventListener("pointerdown", choosing);
  by("map").addEventListener("pointermove", hover);
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.target.matches("input")) return;
    const action = event.key.toLowerCase() === "z" ? (event.shiftKey ? "redo" : "undo") : event.key.toLowerCase() === "y" ? "redo" : "";
    if (action) { event.preventDefault(); act(action); }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawMap());
}

// another tab may have changed the session
async function look() {
  if (!state || document.hidden || by("busy").textContent) return;
  try {
    const { version } = await ask("api/version");
    if (version !== state.version) await show(await ask("api/state"));
    if (by("message").dataset.lost) { say(""); delete by("message").dataset.lost; }
  } catch (error) {
    say(error.message);
    by("message").dataset.lost = "1";
  }
}

listen();
guarded(async () => {
  const answer = await ask("api/state");
  const options = (names) => names.map((name) => make("option", { value: name }, name));
  by("method").replaceChildren(...options(answer.methods));
  by("method").value = "MinimumDensity";
  await show(answer);
  setInterval(look, 1000);
}, "Reading …");
