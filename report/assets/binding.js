// ---- Part 3: the history of a binding ----

function showBinding() {
  showHistory();
  showGraph();
}

/** Marks the chosen binding in the differences. */
function showChosen() {
  document.querySelectorAll("#step a.t-name").forEach((link) => link.classList.toggle("chosen", link.dataset.name === state.binding));
}

function showHistory() {
  const section = $("history");
  const { function: f, binding } = state;
  const heading = make("h2", { id: "history-title" }, "History of a binding");
  if (!binding) {
    section.replaceChildren(heading, make("p", { class: "empty" }, "Choose a name in the program, or search for one, to see which pass made it, changed it and removed it."));
    return;
  }
  heading.replaceChildren("History of ", make("span", { class: "code" }, binding), make("span", { class: "dim" }, ` in @${functions[f]}`));
  const events = eventsOf(f).get(binding) ?? [];
  const items = [];
  const first = events[0];
  const begin = stateAt(f, -1).get(binding);
  if (!first || first.kind !== "made") {
    const line = first?.old ?? begin;
    const says = line !== undefined && parse(line).isHead ? "A parameter of the program" : "In the program before the first pass";
    items.push(make("li", null, make("p", { class: "what" }, make("b", null, says)), line === undefined ? null : make("pre", { class: "plain" }, textOf(line))));
  }
  for (const { run, kind, old, now } of events) {
    const reasons = reasonsOf(run, f, binding);
    items.push(make("li", { "--colour": colourOf(run) },
      make("p", { class: "what" }, kind === "made" ? "Made by" : kind === "changed" ? "Changed by" : "Removed by",
        make("button", { type: "button", "aria-label": `${kind} by ${title(run)}`, onclick: () => choose(run) }, title(run))),
      old === undefined ? null : make("pre", { class: "old" }, textOf(old)),
      now === undefined ? null : make("pre", { class: "new" }, textOf(now)),
      ...reasons.map((why) => make("p", { class: "why" }, why))));
  }
  const isGone = events.at(-1)?.kind === "removed";
  if (!isGone) items.push(make("li", null, make("p", { class: "what dim" }, "In the result")));
  section.replaceChildren(heading, make("ol", { class: "events" }, ...items));
}

/** Why a pass did something to a binding: its rewrites, or those of the function as a whole; and the messages about it. */
function reasonsOf(run, f, binding) {
  const { rewrites = [], messages = [] } = runs[run];
  const ofBinding = rewrites.filter(([of, name]) => of === f && name !== null && nameOf(name) === binding);
  const ofWhole = () => rewrites.filter(([of, name]) => (of === f || of === null) && name === null);
  const made = (ofBinding.length > 0 ? ofBinding : ofWhole()).map(([, , why]) => recording.reasons[why]);
  const said = messages.filter((m) => m.function === functions[f] && m.binding !== undefined && nameOf(m.binding) === binding);
  return [...new Set([...made, ...said.map((m) => m.message)])].slice(0, 8);
}

const textOf = (line) => parse(line).text + (parse(line).type && !parse(line).isHead ? `  ${parse(line).type}` : "");

// ---- Part 4: the neighbours of a binding ----

/** The pass after which a binding can be shown: the chosen one, or one near it. */
function shownAfter(f, binding) {
  // The passes of a sequence come after it.
  let last = state.run;
  while (isWithin(last + 1, state.run)) last++;
  for (const { run, kind } of eventsOf(f).get(binding) ?? []) {
    if (kind === "made" && last < run) return run;
    if (kind === "removed" && last >= run) last = Math.min(last, run - 1);
  }
  return last;
}

/** Returns true if a run is part of a sequence, at any depth. */
function isWithin(run, sequence) {
  let outer = runs[run]?.parent;
  while (outer !== undefined && outer > sequence) outer = runs[outer].parent;
  return outer !== undefined && outer === sequence;
}

/** The names around a binding, in layers: from two steps before it to two steps after it. */
function layersOf(f, last, centre) {
  const { names, users } = neighbours(f, last);
  const layer = new Map([[centre, 0]]);
  let left = 0;
  const layers = [[], [], [centre], [], []];
  const operands = (name) => (names.has(name) && !parse(names.get(name)).isHead ? parse(names.get(name)).uses : []);
  const put = (name, at) => {
    if (layer.has(name)) return;
    if (layers[at].length === MOST_IN_LAYER) return left++;
    layer.set(name, at - 2);
    layers[at].push(name);
  };
  operands(centre).forEach((name) => put(name, 1));
  (users.get(centre) ?? []).forEach((name) => put(name, 3));
  for (const name of [...layers[1]]) operands(name).forEach((operand) => put(operand, 0));
  for (const name of [...layers[3]]) (users.get(name) ?? []).forEach((user) => put(user, 4));
  const edges = [];
  for (const name of layer.keys()) for (const operand of operands(name)) if (layer.has(operand)) edges.push([operand, name]);
  // Each layer is ordered by the mean place of its neighbours in the layer next to it, from the
  // centre outwards.
  const place = new Map();
  const note = (list) => list.forEach((name, i) => place.set(name, (i + 0.5) / list.length));
  note(layers[2]);
  for (const at of [1, 3, 0, 4]) {
    const mean = new Map(layers[at].map((name) => {
      const near = edges.flatMap(([a, b]) => (a === name ? [b] : b === name ? [a] : [])).filter((n) => place.has(n));
      return [name, near.length ? near.reduce((sum, n) => sum + place.get(n), 0) / near.length : 0.5];
    }));
    layers[at].sort((a, b) => mean.get(a) - mean.get(b));
    note(layers[at]);
  }
  return { names, layers: layers.filter((list) => list.length > 0), edges, left };
}

function showGraph() {
  const section = $("graph");
  const { function: f, binding: centre } = state;
  const heading = make("h2", { id: "graph-title" }, "Neighbours");
  if (!centre) {
    section.replaceChildren(heading, make("p", { class: "empty" }, "The operands and the users of the chosen binding, two steps around it, are drawn here."));
    return;
  }
  const last = shownAfter(f, centre);
  const { names, layers, edges, left } = layersOf(f, last, centre);
  const [WIDTH, HEIGHT, GAP, RISE] = [116, 40, 12, 38];
  const most = Math.max(...layers.map((list) => list.length));
  const width = Math.max(most * (WIDTH + GAP) - GAP, WIDTH) + 8;
  const height = layers.length * (HEIGHT + RISE) - RISE + 8;
  const at = new Map();
  layers.forEach((list, y) => list.forEach((name, x) => {
    const indent = (width - list.length * (WIDTH + GAP) + GAP) / 2;
    at.set(name, { x: indent + x * (WIDTH + GAP), y: 4 + y * (HEIGHT + RISE) });
  }));
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Operands and users of ${centre}` },
    draw("defs", null, draw("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
      draw("path", { d: "M0 0 8 4 0 8z" }))));
  for (const [from, to] of edges) {
    const [a, b] = [at.get(from), at.get(to)];
    const [x, y, v, w] = [a.x + WIDTH / 2, a.y + HEIGHT, b.x + WIDTH / 2, b.y - 1];
    const bend = w > y ? (w - y) / 2 : 26;
    const near = from === centre || to === centre ? "edge near" : "edge";
    svg.append(draw("path", { class: near, d: `M${x} ${y}C${x} ${y + bend} ${v} ${w - bend} ${v} ${w}`, "marker-end": "url(#arrow)" }));
  }
  const makers = new Set();
  for (const [name, { x, y }] of at) {
    const line = names.get(name);
    const known = line === undefined ? null : parse(line);
    const label = !known ? "elsewhere" : known.isHead ? "parameter" : known.operator;
    const maker = known && !known.isHead ? makerOf(f, name) : -1;
    makers.add(maker);
    const go = () => {
      choose(state.run, f, name);
      document.querySelector(".node.centre")?.focus();
    };
    const says = `${label} ${name}${known?.type && !known.isHead ? `, ${known.type}` : ""}`;
    svg.append(draw("g", {
      class: `node${name === centre ? " centre" : ""}${known ? "" : " unknown"}`, transform: `translate(${x} ${y})`,
      "--colour": colourOf(maker), tabindex: 0, role: "button", "aria-label": says, "data-name": name, onclick: go,
      onkeydown: (event) => nodeKey(event, name, go, layers),
    },
      draw("title", null, known && !known.isHead ? textOf(line) : says),
      draw("rect", { width: WIDTH, height: HEIGHT, rx: 6 }), draw("rect", { class: "tint", width: WIDTH, height: HEIGHT, rx: 6 }),
      draw("text", { x: WIDTH / 2, y: 17 }, cut(label, 17)), draw("text", { class: "of", x: WIDTH / 2, y: 32 }, cut(name, 17))));
  }
  const leaf = leaves.findLast((i) => i <= last) ?? -1;
  const when = leaf < 0 ? "before the first pass" : `after ${title(leaf)}`;
  const legend = [...makers].sort((a, b) => a - b).map((maker) =>
    make("li", { "--colour": colourOf(maker) }, maker < 0 ? "in the program before" : `made by ${title(maker)}`));
  section.replaceChildren(heading, make("figure", null, svg,
    make("figcaption", null, make("ul", { class: "makers" }, ...legend),
      `The program ${when}.${left ? ` ${count(left, "more neighbour")} not drawn.` : ""} Arrow keys go from node to node.`)));
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function nodeKey(event, name, go, layers) {
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    return go();
  }
  const y = layers.findIndex((list) => list.includes(name));
  const x = layers[y].indexOf(name);
  const list = { ArrowUp: layers[y - 1], ArrowDown: layers[y + 1], ArrowLeft: layers[y], ArrowRight: layers[y] }[event.key];
  if (!list) return;
  event.preventDefault();
  const to = { ArrowLeft: x - 1, ArrowRight: x + 1 }[event.key] ?? Math.round(((x + 0.5) / layers[y].length) * list.length - 0.5);
  const next = list[Math.min(Math.max(to, 0), list.length - 1)];
  [...document.querySelectorAll(".node")].find((node) => node.dataset.name === next)?.focus();
}
