// ---- Part 3: the history of a binding ----

function showBinding() {
  showHistory();
  showGraph();
}

/** Marks the chosen binding in the differences. */
function showChosen() {
  document.querySelectorAll("#step a.t-name").forEach((link) => link.classList.toggle("chosen", link.dataset.name === state.binding && Number(link.dataset.function) === state.function));
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
  const events = eventsOf(f, binding);
  const items = [beginOf(f, binding, events)];
  for (let i = 0; i < events.length; i++) {
    const { run, kind, old, now } = events[i];
    if (kind === "not kept" && old === undefined && now === undefined) {
      // Passes of which nothing is known are one item.
      const runsOf = [run];
      while (events[i + 1]?.kind === "not kept" && events[i + 1].old === undefined && events[i + 1].now === undefined) runsOf.push(events[++i].run);
      items.push(gapItem(f, runsOf));
      continue;
    }
    const reasons = reasonsOf(run, f, binding, [old, now]);
    const says = { made: "Made by", changed: "Changed by", removed: "Removed by", "not kept": "Changed or removed by" }[kind];
    items.push(make("li", { "--colour": colourOf(run) },
      make("p", { class: "what" }, old === undefined && kind === "not kept" ? "Made or changed by" : says, runButton(run)),
      old === undefined ? null : make("pre", { class: "old" }, textOf(old)),
      now === undefined ? null : make("pre", { class: "new" }, textOf(now)),
      kind === "not kept" ? make("p", { class: "why" }, `Not all changes of @${functions[f]} by this pass were kept.`) : null,
      ...reasons.map((why) => make("p", { class: "why" }, why))));
  }
  const end = endOf(binding, events);
  if (end) items.push(make("li", null, make("p", { class: "what dim" }, end)));
  section.replaceChildren(heading, make("ol", { class: "events" }, ...items));
}

const runButton = (run) => make("button", { type: "button", "aria-label": title(run), onclick: () => choose(run) }, title(run));

/** The passes of which not all changes of the function were kept. */
function gapItem(f, runsOf) {
  const some = runsOf.slice(0, 8);
  const more = runsOf.length > some.length ? ` and ${count(runsOf.length - some.length, "more pass", "more passes")}` : "";
  return make("li", { class: "gap" }, make("p", { class: "what dim" }, `Changes of @${functions[f]} were not kept by`, ...some.map(runButton), more));
}

/** The item of a binding before the first pass; nothing if a pass made it. */
function beginOf(f, binding, events) {
  const first = events[0];
  const line = stateAt(f, -1).get(binding);
  const isListed = programOf.has(f);
  if (isListed ? line === undefined : first?.kind === "made") return null;
  const sure = events.find(({ kind }) => kind !== "not kept");
  if (!isListed && first?.kind === "not kept") {
    if (first.old === undefined) {
      return make("li", null, make("p", { class: "what dim" }, "Whether it was in the program before the first pass is not known"));
    }
  }
  const at = line ?? first?.old ?? sure?.old;
  const says = at !== undefined && isParameter(at, binding)
    ? "A parameter of the program"
    : isNameless(binding) && !isListed ? "In the program before, maybe with another number" : "In the program before the first pass";
  return make("li", null, make("p", { class: "what" }, make("b", null, says)), at === undefined ? null : make("pre", { class: "plain" }, textOf(at)));
}

/** What became of a binding after its last event. */
function endOf(binding, events) {
  const last = events.at(-1)?.kind;
  if (last === "removed") return null;
  if (last === "not kept") return "What became of it is not known";
  if (isNameless(binding)) return "It has no name, so it is followed only until its function is renumbered";
  return recording.runs_left_out > 0 ? "In the program after the last pass that was kept" : "In the result";
}

/**
 * Why a pass did something to a binding: its rewrites, or else those of the operands that it lost, or else those of the
 * result and of the function as a whole; and the messages about it.
 */
function reasonsOf(run, f, binding, [old, now]) {
  const { rewrites = [], messages = [] } = runs[run];
  const why = ([, , reason]) => recording.reasons[reason];
  let made = rewrites.filter(([of, name]) => of === f && name !== null && spellings[name] === binding).map(why);
  if (made.length === 0 && old !== undefined && now !== undefined) {
    const kept = new Set(parse(now).uses);
    const lost = new Set(parse(old).uses.filter((name) => !kept.has(name)));
    const ofLost = rewrites.filter(([of, name]) => of === f && name !== null && lost.has(spellings[name]));
    made = ofLost.map((rewrite) => `${spellings[rewrite[1]]}: ${why(rewrite)}`);
  }
  if (made.length === 0) made = rewrites.filter(([of, name]) => (of === f || of === null) && name === null).map(why);
  const said = messages.filter((m) => m.function === functions[f] && m.name === binding);
  return [...new Set([...made, ...said.map((m) => m.message)])].slice(0, 8);
}

const textOf = (line) => parse(line).text + (parse(line).type && !parse(line).isHead ? `  ${parse(line).type}` : "");

// ---- Part 4: the neighbours of a binding ----

/** The pass after which a binding can be shown: the chosen one, or one near it. */
function shownAfter(f, binding) {
  // The passes of a sequence come after it.
  let last = state.run;
  while (isWithin(last + 1, state.run)) last++;
  for (const { run, kind } of historyOf(f).events.get(binding) ?? []) {
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
  const left = new Set();
  const layers = [[], [], [centre], [], []];
  const operands = (name) => (names.has(name) && !isParameter(names.get(name), name) ? parse(names.get(name)).uses : []);
  const put = (name, at) => {
    if (layer.has(name)) return;
    // A name has one place, and is not drawn if each layer that it could be in is full.
    if (layers[at].length === MOST_IN_LAYER) return left.add(name);
    left.delete(name);
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
  return { names, layers: layers.filter((list) => list.length > 0), edges, left: left.size };
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
    const isOwn = known !== null && !isParameter(line, name);
    const label = !known ? "elsewhere" : isOwn ? known.operator : "parameter";
    const maker = isOwn ? makerOf(f, name) : -1;
    if (known) makers.add(maker);
    const go = () => {
      choose(state.run, f, name);
      document.querySelector(".node.centre")?.focus();
    };
    const says = `${label} ${name}${isOwn && known.type ? `, ${known.type}` : ""}`;
    svg.append(draw("g", {
      class: `node${name === centre ? " centre" : ""}${known ? "" : " unknown"}`, transform: `translate(${x} ${y})`,
      "--colour": colourOf(maker), tabindex: 0, role: "button", "aria-label": says, "data-name": name, onclick: go,
      onkeydown: (event) => nodeKey(event, name, go, layers),
    },
      draw("title", null, isOwn ? textOf(line) : says),
      draw("rect", { width: WIDTH, height: HEIGHT, rx: 6 }), draw("rect", { class: "tint", width: WIDTH, height: HEIGHT, rx: 6 }),
      draw("text", { x: WIDTH / 2, y: 17 }, cut(label, 17)), draw("text", { class: "of", x: WIDTH / 2, y: 32 }, cut(name, 17))));
  }
  const leaf = leaves.findLast((i) => i <= last) ?? -1;
  const when = leaf < 0 ? "before the first pass" : `after ${title(leaf)}`;
  const isSure = !historyOf(f).gaps.some((run) => run <= last);
  const doubt = isSure ? "" : ` Changes of @${functions[f]} were not kept, so the graph may be out of date.`;
  const legend = [...makers].sort((a, b) => a - b).map((maker) =>
    make("li", { "--colour": colourOf(maker) }, maker < 0 ? (isSure ? "in the program before" : "in the program before, or not known") : `made by ${title(maker)}`));
  section.replaceChildren(heading, make("figure", null, svg,
    make("figcaption", null, make("ul", { class: "makers" }, ...legend),
      `The program ${when}.${doubt}${left ? ` ${count(left, "more neighbour")} not drawn.` : ""} Arrow keys go from node to node.`)));
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
