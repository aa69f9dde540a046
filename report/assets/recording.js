// The recording, its histories and its lines. recording.js, passes.js, binding.js and page.js are the
// script of the page of a recording, after elements.js. `data` is described in `Recording::to_json`
// (report/src/recording).
//
// The page is built from the recording when it is looked at: the bar at once, the differences of a
// function when its part is opened, the history and the neighbours of a binding when it is chosen.
// The state is in the address of the page, so that a place in it can be linked to.

const recording = data.recording;
const { lines, types, names: spellings, labels, functions, runs } = recording;

/** The most nodes of a layer of the graph, and remarks and functions that are shown at once. */
const MOST_IN_LAYER = 6;
const MOST_MESSAGES = 200;
const MOST_FUNCTIONS = 50;

/** The colours of the passes that made bindings, as hues. */
const HUES = [212, 28, 152, 282, 340, 84, 188, 52];

const state = { run: -1, function: -1, binding: null };

/** The passes that are not sequences, their numbers from 1, and those that changed something. */
const leaves = runs.map((run, i) => i).filter((i) => runs[i].kind !== "sequence");
const numbers = [];
leaves.forEach((run, i) => (numbers[run] = i + 1));

/** The passes that other passes run. Their changes are among those of the pass that runs them. */
const wholes = [];
runs.forEach((run, i) => {
  const { parent } = run;
  wholes[i] = parent === undefined || (runs[parent].kind === "sequence" && wholes[parent] === parent) ? i : wholes[parent];
});
const isPart = (run) => wholes[run] !== run;
const changed = leaves.filter((i) => runs[i].outcome === "changed" && !isPart(i));

const functionIndex = new Map(functions.map((name, f) => [name, f]));

// ---- Texts ----

function duration(micros) {
  if (micros >= 1e6) return `${(micros / 1e6).toFixed(2)} s`;
  if (micros >= 1000) return `${(micros / 1000).toFixed(micros >= 1e5 ? 0 : 2)} ms`;
  return `${micros.toFixed(micros >= 100 ? 0 : 1)} µs`;
}

function bytes(n) {
  let value = Math.abs(n);
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (value < 1024 || unit === "GiB") return `${unit === "B" ? value : value.toFixed(1)} ${unit}`;
    value /= 1024;
  }
}

const signed = (n, text) => `${n > 0 ? "+" : n < 0 ? "−" : ""}${text}`;
const title = (run) => (numbers[run] ? `${numbers[run]} · ${runs[run].name}` : runs[run].name);

/** Writes out the long names in a text, each of which is one character (report/src/short_names.rs). */
function full(text) {
  if (!recording.short_names || !text) return text;
  const index = (code) => (code < 0xf0000 ? code - 0xe000 : code < 0x100000 ? code - 0xf0000 + 6400 : code - 0x100000 + 71934);
  return text.replace(/[\uE000-\uF8FF\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}]/gu, (c) => spellings[index(c.codePointAt(0))]);
}

// ---- The parts of lines ----

const decoded = new Map();

/** A line with its type, its operator, the name that it binds, its parameters and the names that it uses. */
function parse(line) {
  let found = decoded.get(line);
  if (found) return found;
  const [short, flags, type, depth, label, binding, uses = [], parameters = []] = lines[line];
  const name = (i) => spellings[i];
  found = {
    text: full(short), depth,
    isHead: (flags & 1) > 0,
    isAbridged: (flags & 2) > 0,
    type: type < 0 ? "" : types[type],
    operator: labels[label],
    binding: binding < 0 ? null : name(binding),
    uses: uses.map(name),
    parameters: parameters.map(name),
  };
  decoded.set(line, found);
  return found;
}

/** The names that a line binds, as its own or as parameters. */
function bindersOf(line) {
  const { binding, parameters } = parse(line);
  return binding === null ? parameters : [binding, ...parameters];
}

/** Returns true if a line has a name as a parameter. */
const isParameter = (line, name) => parse(line).binding !== name;

/** Returns true for a variable without a name. It has a new number when its function is renumbered. */
const isNameless = (name) => name.startsWith("%#");

// ---- Histories and states ----

const changesOf = new Map();

/** The changes of a function, in the order of the passes. */
function changes(f) {
  if (changesOf.size === 0) {
    runs.forEach((run, i) => {
      if (run.outcome !== "changed") return;
      for (const change of run.changes ?? []) {
        if (!changesOf.has(change.function)) changesOf.set(change.function, []);
        changesOf.get(change.function).push({ run: i, change });
      }
    });
    changesOf.set(-1, []);
  }
  return changesOf.get(f) ?? [];
}

const histories = new Map();

/** The passes that changed functions of which no change was kept. */
const unkept = leaves.filter((i) => runs[i].functions_left_out > 0);

/**
 * The events of each binding of a function: which pass made, changed and removed it, as
 * `Recording::history` (report/src/recording) has them. `gaps` are the passes of which not all
 * changes of the function were kept; a binding that one of them does not show has no event of it.
 */
function historyOf(f) {
  if (histories.has(f)) return histories.get(f);
  const events = new Map();
  const kept = new Set();
  const gaps = new Set();
  const linesOf = (hunks, side) => {
    const found = new Map();
    for (const hunk of hunks) for (const line of hunk[side]) for (const name of bindersOf(line)) if (!found.has(name)) found.set(name, line);
    return found;
  };
  for (const { run, change } of changes(f)) {
    kept.add(run);
    const isCut = change.rows_left_out > 0;
    if (isCut) gaps.add(run);
    const before = linesOf(change.hunks ?? [], 2);
    const after = linesOf(change.hunks ?? [], 3);
    for (const name of new Set([...before.keys(), ...after.keys()])) {
      const [old, now] = [before.get(name), after.get(name)];
      // A line may have changed around a parameter.
      if (old !== undefined && now !== undefined && isParameter(old, name) && isParameter(now, name)) continue;
      if (!events.has(name)) events.set(name, []);
      const isBoth = old !== undefined && now !== undefined;
      const kind = isBoth ? "changed" : isCut ? "not kept" : old === undefined ? "made" : "removed";
      events.get(name).push({ run, kind, old, now });
    }
  }
  for (const run of unkept) if (!kept.has(run)) gaps.add(run);
  histories.set(f, { events, gaps: [...gaps].sort((a, b) => a - b) });
  return histories.get(f);
}

/** The events of a binding in the order of the passes, with those that may be missing. */
function eventsOf(f, name) {
  const { events, gaps } = historyOf(f);
  const known = events.get(name) ?? [];
  const runsOf = new Set(known.map(({ run }) => run));
  const missing = gaps.filter((run) => !runsOf.has(run)).map((run) => ({ run, kind: "not kept" }));
  return [...known, ...missing].sort((a, b) => a.run - b.run);
}

const programOf = new Map(recording.program);

/** The lines of the names of a function after a pass, as far as they are known. */
function stateAt(f, last) {
  const names = new Map();
  const put = (line) => bindersOf(line).forEach((name) => names.set(name, line));
  (programOf.get(f) ?? []).forEach(put);
  const known = changes(f);
  // Lines around changes belong to the function although no listing of it is in the page.
  if (!programOf.has(f)) {
    for (const { change } of known) for (const hunk of change.hunks ?? []) [...hunk[4], ...hunk[5], ...hunk[2]].forEach(put);
    for (const { change } of [...known].reverse()) for (const hunk of change.hunks ?? []) {
      for (const line of hunk[3]) for (const name of bindersOf(line)) names.delete(name);
      hunk[2].forEach(put);
    }
  }
  for (const { run, change } of known) {
    if (run > last) break;
    for (const hunk of change.hunks ?? []) for (const line of hunk[2]) bindersOf(line).forEach((name) => names.delete(name));
    for (const hunk of change.hunks ?? []) hunk[3].forEach(put);
  }
  return names;
}

let lastState = null;

/** The state of a function after a pass, with the users of each name. */
function neighbours(f, last) {
  if (lastState?.f === f && lastState.last === last) return lastState;
  const names = stateAt(f, last);
  const users = new Map();
  for (const [name, line] of names) {
    if (isParameter(line, name)) continue;
    for (const used of parse(line).uses) {
      if (!users.has(used)) users.set(used, []);
      users.get(used).push(name);
    }
  }
  lastState = { f, last, names, users };
  return lastState;
}

/** The pass that made a binding; -1 if it was in the program before. */
function makerOf(f, name) {
  const first = historyOf(f).events.get(name)?.[0];
  return first?.kind === "made" ? first.run : -1;
}

function colourOf(maker) {
  if (maker < 0) return "var(--dim)";
  const makers = colourOf.makers ??= [...new Set(runs.map((run) => run.name))];
  return `hsl(${HUES[makers.indexOf(runs[maker].name) % HUES.length]} 62% 50%)`;
}

// ---- Lines as elements ----

/** A line with its tokens and links to bindings; what differs from `other` is marked. */
function lineOf(line, f, other) {
  const { text, type, binding, isHead, parameters, uses } = parse(line);
  const links = new Set([binding, ...parameters, ...uses]);
  const all = tokens(text);
  const that = other === undefined ? null : parse(other);
  const [from, to] = that ? markedPart(all, tokens(that.text)) : [0, 0];
  const parts = document.createDocumentFragment();
  let into = parts;
  let isFirst = true;
  all.forEach((token, i) => {
    if (that && i === from && from < to) into = parts.appendChild(make("mark"));
    if (that && i === to) into = parts;
    const name = token.text;
    if (!links.has(name)) return into.append(coloured(token));
    const isBinder = isFirst && binding === name;
    isFirst = false;
    into.append(make("a", {
      class: "t-name", href: address(state.run, f, name), "data-name": name, "data-function": f,
      tabindex: isBinder || isHead ? null : -1, title: "Show its history and neighbours",
    }, name));
  });
  if (that && that.text === text && that.type === type && parse(line).isAbridged) {
    parts.append("  ", make("span", { class: "t-word" }, "(may differ in a part that is not shown)"));
  }
  // The types are in the inspector too; here, those that have changed.
  if (that && that.type !== type && type && !isHead) parts.append("  ", make("mark", null, make("span", { class: "t-type" }, type)));
  return parts;
}

// ---- The address ----

function address(run, f, name) {
  const parts = [`pass=${run + 1}`];
  if (f >= 0 && name) parts.push(`function=${encodeURIComponent(functions[f])}`, `binding=${encodeURIComponent(name.slice(1))}`);
  return `#${parts.join("&")}`;
}

function readAddress() {
  const query = new URLSearchParams(location.hash.slice(1));
  const run = Number(query.get("pass")) - 1;
  const f = functionIndex.get(query.get("function")) ?? -1;
  return {
    run: runs[run] ? run : -1,
    function: f,
    binding: f >= 0 && query.has("binding") ? `%${query.get("binding")}` : null,
  };
}

/** Chooses a pass, a binding, or both, and shows them. */
function choose(run, f = state.function, name = state.binding, isQuiet = false) {
  const [wasRun, wasFunction, wasBinding] = [state.run, state.function, state.binding];
  Object.assign(state, { run, function: f, binding: name });
  if (wasRun !== run) showStep();
  if (wasRun !== run || wasFunction !== f || wasBinding !== name) {
    showBinding();
    showChosen();
  }
  if (!isQuiet) {
    try {
      history.replaceState(null, "", address(run, f, name));
    } catch {
      // A page in a frame without an address has no history.
    }
  }
}
