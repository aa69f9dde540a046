// The program of the page. `data` is described in `Recording::to_json` (manager/src/recording).
//
// The page is built from the recording when it is looked at: the bar at once, the differences of a
// function when its part is opened, the history and the neighbours of a binding when it is chosen.
// The state is in the address of the page, so that a place in it can be linked to.
(() => {
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const recording = data.recording;
const { lines, types, functions, runs } = recording;
const $ = (id) => document.getElementById(id);

/** The most rows of a function, nodes of a layer of the graph, and remarks that are shown. */
const MOST_ROWS = 400;
const MOST_IN_LAYER = 6;
const MOST_MESSAGES = 200;

/** The colours of the passes that made bindings, as hues. */
const HUES = [212, 28, 152, 282, 340, 84, 188, 52];

const state = { run: -1, function: -1, binding: null };

/** The passes that are not sequences, their numbers from 1, and those that changed something. */
const leaves = runs.map((run, i) => i).filter((i) => runs[i].kind !== "sequence");
const numbers = [];
leaves.forEach((run, i) => (numbers[run] = i + 1));
const changed = leaves.filter((i) => runs[i].outcome === "changed");

// ---- Elements ----

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const make = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// ---- Texts ----

const number = new Intl.NumberFormat("en");
const count = (n, one, many = one + "s") => `${number.format(n)} ${n === 1 ? one : many}`;

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

// ---- The parts of lines ----

const NAME = String.raw`%(?:"(?:\\.|[^"\\])*"|[\w.$]+)`;
const TOKEN = new RegExp(
  String.raw`(?<string>"(?:\\.|[^"\\])*")|(?<name>${NAME})|(?<global>@(?:"(?:\\.|[^"\\])*"|[\w.$]+))` +
    String.raw`|(?<word>\b(?:let|def|private|declare|if|else|then|fn|dataflow)\b)|(?<op>\b[A-Za-z_][\w.]*(?=\())|(?<other>[\w.]+|\s+|.)`,
  "gsu",
);

/** The tokens of a text, each with its kind. */
function tokens(text) {
  return Array.from(text.matchAll(TOKEN), (match) => {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    return { kind, text: match[0] };
  });
}

const parsed = new Map();

/** A line with the name that it binds, its operator and the names that it uses. */
function parse(line) {
  let found = parsed.get(line);
  if (found) return found;
  const [text, type, depth] = lines[line];
  const all = tokens(text);
  const names = all.filter((token) => token.kind === "name").map((token) => token.text);
  const isHead = /^(?:def|declare)\b/.test(text);
  const isLet = text.startsWith("let %");
  const value = isLet ? text.slice(text.indexOf(" = ") + 3) : text;
  const operator =
    /^[A-Za-z_][\w.]*(?=\()/.exec(value)?.[0] ??
    (value.startsWith("if (") ? "if"
      : value.startsWith("fn ") ? "fn"
      : value.startsWith("(") ? "tuple"
      : value.startsWith("@") ? /^@[^(]*/.exec(value)[0]
      : value.startsWith('op "') ? /^op "((?:\\.|[^"\\])*)"/.exec(value)?.[1] ?? "op"
      : value.startsWith("{") ? "block"
      : /\.\d+;?$/.test(value) ? "field"
      : value.startsWith("%") && value.includes("(") ? "call"
      : value.startsWith("%") ? "alias"
      : "constant");
  found = {
    text, depth, isHead, operator,
    type: type < 0 ? "" : types[type],
    binding: isLet ? names[0] : null,
    uses: isHead ? [] : [...new Set(isLet ? names.slice(1) : names)],
    parameters: isHead ? names : [],
  };
  parsed.set(line, found);
  return found;
}

/** The row of a name in the state of a function: what binds it. */
function bindersOf(line) {
  const { binding, parameters, isHead } = parse(line);
  return isHead ? parameters : binding ? [binding] : [];
}

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

/** The events of each binding of a function: which pass made, changed and removed it. */
function history(f) {
  if (histories.has(f)) return histories.get(f);
  const events = new Map();
  const linesOf = (hunks, side) => {
    const found = new Map();
    for (const hunk of hunks) for (const line of hunk[side]) for (const name of bindersOf(line)) found.set(name, line);
    return found;
  };
  for (const { run, change } of changes(f)) {
    const before = linesOf(change.hunks ?? [], 2);
    const after = linesOf(change.hunks ?? [], 3);
    for (const name of new Set([...before.keys(), ...after.keys()])) {
      const [old, now] = [before.get(name), after.get(name)];
      if (old !== undefined && parse(old).isHead && now !== undefined && parse(now).isHead) continue;
      if (!events.has(name)) events.set(name, []);
      const kind = old === undefined ? "made" : now === undefined ? "removed" : "changed";
      events.get(name).push({ run, kind, old, now });
    }
  }
  histories.set(f, events);
  return events;
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
    const { uses, isHead } = parse(line);
    if (isHead) continue;
    for (const used of uses) {
      if (!users.has(used)) users.set(used, []);
      users.get(used).push(name);
    }
  }
  lastState = { f, last, names, users };
  return lastState;
}

/** The pass that made a binding; -1 if it was in the program before. */
function makerOf(f, name) {
  const first = history(f).get(name)?.[0];
  return first?.kind === "made" ? first.run : -1;
}

function colourOf(maker) {
  if (maker < 0) return "var(--dim)";
  const makers = colourOf.makers ??= [...new Set(runs.map((run) => run.name))];
  return `hsl(${HUES[makers.indexOf(runs[maker].name) % HUES.length]} 62% 50%)`;
}

// ---- Lines as elements ----

/** Parts of a text that an other text does not have: all between what is the same at both ends. */
function markedPart(mine, other) {
  let start = 0;
  while (start < mine.length && start < other.length && mine[start].text === other[start].text) start++;
  let end = 0;
  const room = Math.min(mine.length, other.length) - start;
  while (end < room && mine[mine.length - 1 - end].text === other[other.length - 1 - end].text) end++;
  return [start, mine.length - end];
}

/** A line with its tokens and links to bindings; what differs from `other` is marked. */
function lineOf(line, f, other) {
  const { text, type, binding, isHead } = parse(line);
  const all = tokens(text);
  const that = other === undefined ? null : parse(other);
  const [from, to] = that ? markedPart(all, tokens(that.text)) : [0, 0];
  const parts = document.createDocumentFragment();
  let into = parts;
  let isFirst = true;
  all.forEach(({ kind, text }, i) => {
    if (that && i === from && from < to) into = parts.appendChild(make("mark"));
    if (that && i === to) into = parts;
    if (kind === "name") {
      const isBinder = isFirst && binding === text;
      into.append(make("a", {
        class: "t-name", href: address(state.run, f, text), "data-name": text,
        tabindex: isBinder || isHead ? null : -1, title: "Show its history and neighbours",
      }, text));
    } else if (kind === "other") into.append(text);
    else into.append(make("span", { class: kind === "string" ? "t-text" : kind === "op" ? "t-op" : kind === "word" ? "t-word" : "" }, text));
    isFirst &&= kind !== "name";
  });
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
  const f = functions.indexOf(query.get("function") ?? "\0");
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
      history_.replaceState(null, "", address(run, f, name));
    } catch {
      // A page in a frame without an address has no history.
    }
  }
}

const history_ = window.history;

// ---- Part 1: the passes ----

const boxes = [];

function showBar() {
  const bar = $("bar");
  const insides = [];
  const rounds = new Map();
  runs.forEach((run, i) => {
    const parent = run.parent ?? -1;
    let inside = parent < 0 ? bar : insides[parent];
    if (run.round && inside) {
      const key = `${parent} ${run.round}`;
      if (!rounds.has(key)) {
        const box = make("div", { class: "inside" });
        const label = make("span", { class: "label" }, `round ${run.round}`);
        rounds.set(key, { box, outer: make("div", { class: "round" }, label, box), time: 0 });
        inside.append(rounds.get(key).outer);
      }
      const round = rounds.get(key);
      round.time += run.time ?? 0;
      round.outer.style.setProperty("--share", Math.max(round.time, 1));
      inside = round.box;
    }
    const share = Math.max(run.time ?? 0, 1);
    const says = `${run.name}: ${run.outcome}, ${duration(run.time ?? 0)}`;
    const button = { type: "button", "data-run": i, tabindex: -1, title: says, onclick: () => choose(i) };
    if (run.kind === "sequence") {
      insides[i] = make("div", { class: "inside" });
      boxes[i] = make("button", { ...button, class: "label", "aria-label": says }, run.name);
      const place = parent < 0 ? "sequence outer" : "sequence";
      inside.append(make("div", { class: place, "--share": share }, boxes[i], insides[i]));
    } else {
      // The parts of a pass are beside it.
      insides[i] = inside;
      const label = make("span", null, run.name);
      boxes[i] = make("button", { ...button, class: `pass ${run.outcome}`, "aria-label": says, "--share": share }, label);
      inside.append(boxes[i]);
    }
  });
  if (runs.length === 0) bar.append(make("p", { class: "empty" }, "No pass ran."));
  bar.addEventListener("keydown", (event) => {
    const at = boxes.indexOf(document.activeElement);
    if (at < 0) return;
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: runs.length - 1 }[event.key];
    if (to === undefined || !boxes[to]) return;
    event.preventDefault();
    choose(to);
    boxes[to].focus();
  });
  $("previous").addEventListener("click", () => toChange(-1));
  $("next").addEventListener("click", () => toChange(1));
  new ResizeObserver(() => {
    document.documentElement.style.setProperty("--bar-height", `${$("passes").offsetHeight}px`);
  }).observe($("passes"));
}

/** Goes to the next pass that changed something, or to the previous one. */
function toChange(by) {
  const to = by > 0 ? changed.find((i) => i > state.run) : changed.findLast((i) => i < state.run);
  if (to !== undefined) choose(to);
  if (boxes.includes(document.activeElement)) boxes[state.run]?.focus();
}

// ---- Part 2: the chosen pass ----

function showStep() {
  const section = $("step");
  const run = runs[state.run];
  boxes.forEach((box, i) => {
    box.setAttribute("tabindex", i === Math.max(state.run, 0) ? 0 : -1);
    if (i === state.run) box.setAttribute("aria-current", "step");
    else box.removeAttribute("aria-current");
  });
  $("previous").disabled = !changed.some((i) => i < state.run);
  $("next").disabled = !changed.some((i) => i > state.run);
  if (!run) {
    section.replaceChildren(make("h2", { id: "step-title" }, "No pass is chosen"));
    return;
  }
  boxes[state.run].scrollIntoView({ block: "nearest", inline: "nearest" });
  const total = runs[0].time ?? 0;
  const share = total > 0 ? ` (${((100 * (run.time ?? 0)) / total).toFixed(1)} %)` : "";
  const [before, after] = run.bytes ?? [0, 0];
  const figure = (label, value) => make("span", null, `${label} `, make("b", null, value));
  const round = run.round ? figure("round", `${run.round} of ${runs[run.parent]?.name ?? "a fixpoint"}`) : null;
  const list = run.changes ?? [];
  section.replaceChildren(
    make("div", { class: "step-head" },
      make("h2", { id: "step-title" }, title(state.run)),
      make("span", { class: `chip ${run.outcome}` }, run.outcome),
      run.text && run.text !== run.name ? make("span", { class: "code" }, run.text) : null),
    make("p", { class: "figures" },
      figure("time", duration(run.time ?? 0) + share),
      figure("memory", `${bytes(after)}${after === before ? "" : ` (${signed(after - before, bytes(after - before))})`}`),
      round,
      run.for ? figure("needed by", run.for) : null),
    ...(run.reason ? [make("p", { class: "reason" }, run.reason)] : []),
    factsOf(run),
    ...list.map((change, i) => functionPart(change, i, list.length)),
    ...(list.length === 0 ? [make("p", { class: "empty" }, emptyText(run))] : []),
  );
  $("announcement").textContent = `${title(state.run)}, ${run.outcome}`;
  document.querySelectorAll(".chart .here").forEach((mark) => mark.remove());
  showHere();
}

function emptyText(run) {
  if (run.kind === "sequence") return "A sequence changes nothing itself; its passes do.";
  if (run.outcome === "changed") return "No line of a function differs: what changed is not shown in lines.";
  return { unchanged: "The program is as it was.", skipped: "The pass did not run.", failed: "The changes were rolled back." }[run.outcome] ?? "";
}

/** The operators before and after a pass. */
function operatorsAt(last) {
  const sums = new Map(Object.entries(recording.operators));
  runs.slice(0, last + 1).forEach((run) => {
    for (const [name, n] of Object.entries(run.operators ?? {})) sums.set(name, (sums.get(name) ?? 0) + n);
  });
  return sums;
}

function factsOf(run) {
  const parts = make("div", { class: "facts" });
  const differences = Object.entries(run.operators ?? {}).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  if (differences.length > 0) {
    const [was, is] = [operatorsAt(state.run - 1), operatorsAt(state.run)];
    const rows = differences.slice(0, 12).map(([name, n]) => make("tr", null,
      make("td", { class: "code" }, name),
      make("td", null, number.format(was.get(name) ?? 0)),
      make("td", null, number.format(is.get(name) ?? 0)),
      make("td", { class: "difference" }, signed(n, number.format(Math.abs(n))))));
    const head = make("tr", null, ...["operator", "before", "after", ""].map((text) => make("th", { scope: "col" }, text)));
    const more = differences.length > 12 ? make("p", { class: "dim" }, `and ${count(differences.length - 12, "more operator")}`) : null;
    parts.append(make("div", { class: "operators" }, make("h3", null, "Operators"), make("table", null, head, ...rows), more));
  }
  const counts = Object.entries(run.counts ?? {});
  if (counts.length > 0) {
    const rows = counts.map(([name, n]) => make("tr", null, make("td", null, name), make("td", null, number.format(n))));
    parts.append(make("div", { class: "statistics" }, make("h3", null, "Statistics"), make("table", null, ...rows)));
  }
  const remarks = (run.messages ?? []).map((message) => {
    const place = placeOf(message.function, message.binding);
    const line = message.line ? make("span", { class: "dim" }, ` ${message.file}:${message.line}:${message.column}`) : null;
    return make("li", null, message.severity === "remark" ? "" : `${message.severity}: `, `${message.message} `, place, line,
      message.help ? make("span", { class: "dim" }, ` ${message.help}`) : null);
  });
  const misses = (run.near_misses ?? []).map(([what, f, name, why]) => make("li", null, make("b", null, what), " ", placeOf(f, name), ` ${why}`));
  for (const [heading, items, left] of [["Remarks", remarks, run.messages_left_out], ["Near misses", misses, run.near_misses_left_out]]) {
    if (items.length === 0) continue;
    const more = items.length - MOST_MESSAGES + (left ?? 0);
    const shown = items.slice(0, MOST_MESSAGES);
    if (more > 0) shown.push(make("li", { class: "dim" }, `and ${number.format(more)} more`));
    parts.append(make("div", { class: "messages" }, make("h3", null, heading), make("ul", { tabindex: 0, "aria-label": heading }, ...shown)));
  }
  return parts.childElementCount > 0 ? parts : null;
}

/** A function and a binding, as a link to the binding if they are in the program. */
function placeOf(of, binding) {
  const f = functions.indexOf(of ?? "\0");
  const name = binding === undefined || binding === null ? null : nameOf(binding);
  const text = [of && `@${of}`, name].filter(Boolean).join(" ");
  return f >= 0 && name
    ? make("a", { class: "link t-name", href: address(state.run, f, name), "data-name": name, "data-function": f }, text)
    : make("span", { class: "code dim" }, text);
}

/** A name as lines spell it. */
const nameOf = (text) => (/^[\w.$]+$/.test(text) ? `%${text}` : `%"${text.replace(/[\\"]/g, "\\$&")}"`);

/** The differences of a function, which are built when they are opened. */
function functionPart(change, i, of) {
  const [added, edited, removed] = change.bindings ?? [0, 0, 0];
  const amounts = [
    added ? make("span", { class: "plus" }, `+${number.format(added)}`) : null,
    edited ? make("span", null, `~${number.format(edited)}`) : null,
    removed ? make("span", { class: "minus" }, `−${number.format(removed)}`) : null,
  ];
  const word = change.added ? "added" : change.removed ? "removed" : "";
  const part = make("details", { class: "function" },
    make("summary", null, make("span", { class: "name" }, `@${functions[change.function]}`),
      make("span", { class: "amount", "aria-label": `${added} bindings added, ${edited} changed, ${removed} removed` },
        ...amounts.filter(Boolean).flatMap((amount) => [amount, " "])),
      word ? make("span", { class: "chip" }, word) : null));
  let isBuilt = false;
  const build = () => {
    if (isBuilt || !part.open) return;
    isBuilt = true;
    part.append(...differences(change));
    showChosen();
  };
  part.addEventListener("toggle", build);
  if (i === 0 || of <= 3) {
    part.open = true;
    build();
  }
  return part;
}

/** The rows of a difference: pairs of an old and a new line, of which one may be absent. */
function pairs(hunk) {
  const [, , old, now] = hunk;
  const key = (line) => parse(line).binding ?? (parse(line).isHead ? "" : null);
  const places = new Map();
  now.forEach((line, j) => key(line) !== null && places.set(key(line), j));
  const rows = [];
  let j = 0;
  old.forEach((line, i) => {
    const at = key(line) === null ? -1 : places.get(key(line)) ?? -1;
    if (at < j) return rows.push([i, -1]);
    while (j < at) rows.push([-1, j++]);
    rows.push([i, j++]);
  });
  while (j < now.length) rows.push([-1, j++]);
  // Lines that were removed stand beside the lines that were added next to them.
  const joined = [];
  for (const [i, j] of rows) {
    const free = i < 0 && joined.findLastIndex(([, right]) => right >= 0) + 1;
    if (i < 0 && free < joined.length) joined[free][1] = j;
    else joined.push([i, j]);
  }
  return joined;
}

/** Returns true if two lines bind the same name, or are the head of the function. */
function isSame(a, b) {
  if (a === undefined || b === undefined) return false;
  const [old, now] = [parse(a), parse(b)];
  return (old.isHead && now.isHead) || (old.binding !== null && old.binding === now.binding) || (!old.binding && !now.binding);
}

function differences(change) {
  const f = change.function;
  const body = make("tbody");
  const cells = (line, at, side, other) => {
    if (line === undefined) return [make("td", { class: "number void" }), make("td", { class: "line void" })];
    const td = { class: `line ${side}`, "--depth": parse(line).depth, title: parse(line).isHead ? null : parse(line).type };
    return [make("td", { class: `number ${side}` }, String(at + 1)), make("td", td, lineOf(line, f, other))];
  };
  const all = [];
  let reached = 0;
  for (const hunk of change.hunks ?? []) {
    const [i, j, old, now, before, after] = hunk;
    // Rows that the last hunk has shown are not shown again.
    const first = Math.max(j - before.length, reached);
    if (first > reached) all.push(() => make("tr", { class: "gap" }, make("td", { colspan: 4 }, `${count(first - reached, "row")} as before`)));
    const same = (line, k) => () => make("tr", { class: "same" }, ...cells(line, i - j + k, "", undefined), ...cells(line, k, "", undefined));
    for (let k = first; k < j; k++) all.push(same(before[k - (j - before.length)], k));
    for (const [x, y] of pairs(hunk)) {
      all.push(() => make("tr", null,
        ...cells(old[x], i + x, "old", isSame(old[x], now[y]) ? now[y] : undefined),
        ...cells(now[y], j + y, "new", isSame(old[x], now[y]) ? old[x] : undefined)));
    }
    const shift = i + old.length - (j + now.length);
    reached = j + now.length;
    const next = change.hunks[change.hunks.indexOf(hunk) + 1]?.[1] ?? Infinity;
    after.forEach((line, k) => {
      const at = j + now.length + k;
      if (at >= next) return;
      all.push(() => make("tr", { class: "same" }, ...cells(line, at + shift, "", undefined), ...cells(line, at, "", undefined)));
      reached = at + 1;
    });
  }
  const table = make("table", { class: "diff", "aria-label": `@${functions[f]} before and after` },
    make("colgroup", null, make("col", { class: "number" }), make("col"), make("col", { class: "number" }), make("col")), body);
  const parts = [make("div", { class: "rows", tabindex: 0, role: "region", "aria-label": `Changes of @${functions[f]}` }, table)];
  let shown = 0;
  const showMore = () => {
    const to = Math.min(all.length, shown + MOST_ROWS);
    body.append(...all.slice(shown, to).map((row) => row()));
    shown = to;
    if (shown < all.length) more.textContent = `Show ${number.format(Math.min(MOST_ROWS, all.length - shown))} of ${count(all.length - shown, "more row")}`;
    else more.remove();
    showChosen();
  };
  const more = make("button", { type: "button", class: "more-rows", onclick: showMore });
  if (all.length > 0) showMore();
  if (shown < all.length) parts.push(more);
  if (change.rows_left_out) parts.push(make("p", { class: "more-rows dim" }, `${count(change.rows_left_out, "changed row")} were not kept`));
  return all.length > 0 ? parts : parts.slice(1);
}

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
  const events = history(f).get(binding) ?? [];
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

/** Why a pass did something to a binding: the rewrites of the binding, and the messages about it. */
function reasonsOf(run, f, binding) {
  const { rewrites = [], messages = [] } = runs[run];
  const made = rewrites.filter(([of, name]) => of === f && nameOf(name) === binding).map(([, , why]) => recording.reasons[why]);
  const said = messages.filter((m) => m.function === functions[f] && m.binding !== undefined && nameOf(m.binding) === binding);
  return [...new Set([...made, ...said.map((m) => m.message)])].slice(0, 8);
}

const textOf = (line) => parse(line).text + (parse(line).type && !parse(line).isHead ? `  ${parse(line).type}` : "");

// ---- Part 4: the neighbours of a binding ----

/** The pass after which a binding can be shown: the chosen one, or the nearest at which it exists. */
function shownAfter(f, binding) {
  let last = state.run;
  for (const { run, kind } of history(f).get(binding) ?? []) {
    if (kind === "made" && last < run) return run;
    if (kind === "removed" && last >= run) last = Math.min(last, run - 1);
    else if (kind === "made" && last >= run) last = state.run;
  }
  return last;
}

/** The names around a binding, in layers from the operands of its operands to the users of its users. */
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
  const when = last < 0 ? "before the first pass" : `after ${title(last)}`;
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

// ---- Part 5: the run ----

function showRun() {
  const facts = [...data.facts];
  const copied = (text) => async (event) => {
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(button.closest("div").nextElementSibling);
    }
  };
  const text = (heading, content) => content ? [
    make("div", { class: "row" }, make("h3", null, heading), make("button", { type: "button", onclick: copied(content) }, "copy")),
    make("pre", null, content),
  ] : [];
  const list = make("dl", null, ...facts.flatMap(([name, value]) => [make("dt", null, name), make("dd", null, value)]));
  $("run").replaceChildren(
    make("h2", { id: "run-title" }, "The run"),
    make("div", { class: "memory" }, make("h3", null, "Memory of the program"), chart(), list),
    make("div", null, ...text("Pipeline", data.pipeline), ...text("The command that makes this page", data.command)),
  );
}

const memory = leaves.length ? [[-1, runs[leaves[0]].bytes?.[0] ?? 0], ...leaves.map((i) => [i, runs[i].bytes?.[1] ?? 0])] : [];

function chart() {
  if (memory.length < 2) return make("p", { class: "empty" }, "No pass ran.");
  const [WIDTH, HEIGHT] = [600, 132];
  const sizes = memory.map(([, size]) => size);
  const [low, high] = [Math.min(...sizes), Math.max(...sizes)];
  const x = (i) => (i * WIDTH) / (memory.length - 1);
  const y = (size) => HEIGHT - 14 - (high === low ? 0.5 : (size - low * 0.98) / (high - low * 0.98)) * (HEIGHT - 28);
  const points = sizes.map((size, i) => `${x(i).toFixed(1)} ${y(size).toFixed(1)}`);
  const says = `From ${bytes(sizes[0])} to ${bytes(sizes.at(-1))}; the most is ${bytes(high)}.`;
  const svg = draw("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": says },
    draw("path", { class: "area", d: `M0 ${HEIGHT}L${points.join("L")}L${WIDTH} ${HEIGHT}z` }),
    draw("path", { class: "edge", d: `M${points.join("L")}`, "vector-effect": "non-scaling-stroke" }));
  svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect();
    const i = Math.round(((event.clientX - box.left) / box.width) * (memory.length - 1));
    if (memory[i]?.[0] >= 0) choose(memory[i][0]);
  });
  return make("div", null, svg, make("p", { class: "dim" }, says));
}

/** Marks the chosen pass in the chart of the memory. */
function showHere() {
  const at = memory.findIndex(([run]) => run === state.run);
  if (at < 0) return;
  const x = (at * 600) / (memory.length - 1);
  document.querySelector(".chart")?.append(draw("path", { class: "here", d: `M${x} 0V132`, "vector-effect": "non-scaling-stroke" }));
}

// ---- The search ----

/** The names of all bindings, each with its function. */
function allBindings() {
  if (allBindings.found) return allBindings.found;
  const found = [];
  functions.forEach((_, f) => {
    const names = new Set();
    (programOf.get(f) ?? []).forEach((line) => bindersOf(line).forEach((name) => names.add(name)));
    for (const { change } of changes(f)) for (const hunk of change.hunks ?? []) for (const side of [2, 3]) {
      hunk[side].forEach((line) => bindersOf(line).forEach((name) => names.add(name)));
    }
    names.forEach((name) => found.push([f, name]));
  });
  return (allBindings.found = found);
}

function showSearch() {
  const [query, list] = [$("query"), $("matches")];
  let items = [];
  let chosen = -1;
  const close = () => {
    list.hidden = true;
    query.setAttribute("aria-expanded", "false");
    query.removeAttribute("aria-activedescendant");
  };
  const mark = (to) => {
    chosen = to;
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === to)));
    if (to >= 0) query.setAttribute("aria-activedescendant", `match-${to}`);
    list.children[to]?.scrollIntoView({ block: "nearest" });
  };
  const take = (i) => {
    if (!items[i]) return;
    close();
    items[i].go();
  };
  const find = () => {
    const text = query.value.trim().toLowerCase();
    boxes.forEach((box, i) => box.classList.toggle("missed", text !== "" && runs[i].kind !== "sequence" && !runs[i].name.toLowerCase().includes(text)));
    if (text === "") return close();
    const passes = leaves.filter((i) => runs[i].name.toLowerCase().includes(text)).slice(0, 8)
      .map((i) => ({ label: title(i), of: runs[i].outcome, go: () => choose(i) }));
    const bare = text.replace(/^[%@]/, "");
    const bindings = allBindings().filter(([f, name]) => name.toLowerCase().includes(bare) || functions[f].toLowerCase() === bare).slice(0, 12)
      .map(([f, name]) => ({ label: name, of: `@${functions[f]}`, go: () => chooseBinding(f, name) }));
    items = [...passes, ...bindings];
    list.replaceChildren(...items.map(({ label, of }, i) => make("li", {
      id: `match-${i}`, role: "option", onmousedown: (event) => { event.preventDefault(); take(i); },
    }, make("span", null, label), make("span", { class: "dim" }, of))));
    if (items.length === 0) list.append(make("li", { class: "none dim", role: "option", "aria-disabled": "true" }, "Nothing has this name."));
    list.hidden = false;
    query.setAttribute("aria-expanded", "true");
    mark(items.length > 0 ? 0 : -1);
  };
  query.addEventListener("input", find);
  query.addEventListener("focus", find);
  query.addEventListener("blur", close);
  query.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") mark(Math.min(chosen + 1, items.length - 1));
    else if (event.key === "ArrowUp") mark(Math.max(chosen - 1, 0));
    else if (event.key === "Enter") take(chosen);
    else if (event.key === "Escape") { query.value = ""; find(); query.blur(); }
    else return;
    event.preventDefault();
  });
}

/** Chooses a binding, at a pass that it exists at or was changed by. */
function chooseBinding(f, name) {
  const events = history(f).get(name) ?? [];
  const isHere = events.some(({ run }) => run === state.run);
  choose(isHere || events.length === 0 ? state.run : events[0].run, f, name);
  if (matchMedia("(max-width: 900px)").matches) $("history").scrollIntoView({ block: "start" });
}

// ---- The page ----

function showSummary() {
  const total = runs[0]?.time ?? 0;
  const parts = [
    [count(leaves.length, "pass", "passes")], [count(changed.length, "change")], [duration(total)],
  ];
  const more = recording.runs_left_out ? ` · ${count(recording.runs_left_out, "more run")} not kept` : "";
  const failed = runs.some((run) => run.outcome === "failed");
  $("summary").append(...parts.flatMap(([text], i) => [i ? " · " : "", make("b", null, text)]), more,
    failed ? make("span", { class: "chip failed" }, "failed") : "");
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a.t-name");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const part = link.closest("details.function");
  const index = part ? [...part.parentElement.querySelectorAll("details.function")].indexOf(part) : -1;
  const f = link.dataset.function === undefined ? runs[state.run].changes[index].function : Number(link.dataset.function);
  choose(state.run, f, link.dataset.name);
  if (matchMedia("(max-width: 900px)").matches) $("history").scrollIntoView({ block: "start" });
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.("input")) return;
  if (event.key === "n") toChange(1);
  else if (event.key === "p") toChange(-1);
  else if (event.key === "/") $("query").focus();
  else return;
  event.preventDefault();
});

window.addEventListener("hashchange", () => {
  const { run, function: f, binding } = readAddress();
  choose(run < 0 ? state.run : run, f, binding, true);
});

showSummary();
showBar();
showRun();
showSearch();
const asked = readAddress();
state.run = -2;
choose(asked.run >= 0 ? asked.run : changed[0] ?? leaves[0] ?? -1, asked.function, asked.binding, true);
showBinding();
})();
