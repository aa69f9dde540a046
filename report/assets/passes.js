// ---- Part 1: the passes ----

const boxes = [];

/** The time of the runs that are not part of other runs. */
const totalTime = runs.reduce((sum, run) => sum + (run.parent === undefined ? run.time ?? 0 : 0), 0);

function showBar() {
  const bar = $("bar");
  const outermost = make("div", { class: "inside" });
  bar.append(outermost);
  const insides = [];
  const rounds = new Map();
  runs.forEach((run, i) => {
    const parent = run.parent ?? -1;
    let inside = parent < 0 ? outermost : insides[parent];
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
  const share = totalTime > 0 ? ` (${((100 * (run.time ?? 0)) / totalTime).toFixed(1)} %)` : "";
  const [before, after] = run.bytes ?? [0, 0];
  const figure = (label, value) => make("span", null, `${label} `, make("b", null, value));
  const round = run.round ? figure("round", `${run.round} of ${runs[run.parent]?.name ?? "a fixpoint"}`) : null;
  const head = [
    make("div", { class: "step-head" },
      make("h2", { id: "step-title" }, title(state.run)),
      make("span", { class: `chip ${run.outcome}` }, run.outcome),
      run.text && run.text !== run.name ? make("span", { class: "code" }, run.text) : null),
    make("p", { class: "figures" },
      figure("time", duration(run.time ?? 0) + share),
      figure("memory", `${bytes(after)}${after === before ? "" : ` (${signed(after - before, bytes(after - before))})`}`),
      round,
      run.for ? figure("needed by", run.for) : null),
    run.reason ? make("p", { class: "reason" }, run.reason) : null,
    factsOf(run),
  ];
  section.replaceChildren(...head.filter((part) => part !== null), ...functionList(run));
  $("announcement").textContent = `${title(state.run)}, ${run.outcome}`;
  document.querySelectorAll(".chart .here").forEach((mark) => mark.remove());
  showHere();
}

/** The changed functions, of which some are shown at first. */
function functionList(run) {
  const list = run.changes ?? [];
  const left = run.functions_left_out
    ? make("p", { class: "more-rows dim" }, `The changes of ${count(run.functions_left_out, "more function")} were not kept`) : null;
  if (list.length === 0) return [left ?? make("p", { class: "empty" }, ...emptyParts(run))];
  const place = make("div", { class: "functions" });
  const build = (next) => next.forEach((change) => place.append(functionPart(change, place.childElementCount === 0 || list.length <= 3)));
  const { more, next } = moreButton(list, MOST_FUNCTIONS, build, "more function");
  const parts = [place, more, left].filter((part) => part !== null);
  // The button goes if it is in the page, so the parts are in it first.
  const all = make("div", null, ...parts);
  next();
  return [all];
}

function emptyParts(run) {
  const whole = wholes[state.run];
  if (whole !== state.run && run.outcome === "changed") {
    return ["It is a part of ", make("button", { type: "button", class: "link", onclick: () => choose(whole) }, title(whole)), ", and its changes are among those of that pass."];
  }
  if (run.kind === "sequence") return ["A sequence changes nothing itself; its passes do."];
  if (run.outcome === "changed") return ["No line of a function differs: what changed is not shown in lines."];
  return [{ unchanged: "The program is as it was.", skipped: "The pass did not run.", failed: "The changes were rolled back." }[run.outcome] ?? ""];
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
  const counts = Object.entries(run.counts ?? {}).filter(([, n]) => n > 0);
  if (counts.length > 0) {
    const rows = counts.map(([name, n]) => make("tr", null, make("td", null, name), make("td", null, number.format(n))));
    parts.append(make("div", { class: "statistics" }, make("h3", null, "Statistics"), make("table", null, ...rows)));
  }
  const remarks = (run.messages ?? []).map((message) => {
    const place = placeOf(message.function, message.name);
    const line = message.line ? make("span", { class: "dim" }, ` ${message.file}:${message.line}:${message.column}`) : null;
    return make("li", null, message.severity === "remark" ? "" : `${message.severity}: `, `${message.message} `, place, line,
      message.help ? make("span", { class: "dim" }, ` ${message.help}`) : null);
  });
  const misses = (run.near_misses ?? []).map(([what, f, name, why]) => make("li", null, make("b", null, what), " ", placeOf(f, full(name)), ` ${full(why)}`));
  for (const [heading, items, left, isCut] of [["Remarks", remarks, run.messages_left_out], ["Near misses", misses, 0, run.has_more_near_misses]]) {
    if (items.length === 0 && !isCut) continue;
    const more = items.length - MOST_MESSAGES + (left ?? 0);
    const shown = items.slice(0, MOST_MESSAGES);
    if (more > 0) shown.push(make("li", { class: "dim" }, `and ${isCut ? "at least " : ""}${number.format(more)} more`));
    else if (isCut) shown.push(make("li", { class: "dim" }, "and perhaps others"));
    parts.append(make("div", { class: "messages" }, make("h3", null, heading), make("ul", { tabindex: 0, "aria-label": heading }, ...shown)));
  }
  return parts.childElementCount > 0 ? parts : null;
}

/** A function and a binding, as a link to the binding if they are in the program. */
function placeOf(of, name) {
  const f = functionIndex.get(of) ?? -1;
  const text = [of && `@${of}`, name].filter(Boolean).join(" ");
  return f >= 0 && name
    ? make("a", { class: "link t-name", href: address(state.run, f, name), "data-name": name, "data-function": f }, text)
    : make("span", { class: "code dim" }, text);
}

/** The differences of a function, which are built when they are opened. */
function functionPart(change, isOpen) {
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
  if (isOpen) {
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
  // Lines that were removed stand beside the lines that were added next to them: `free` is the
  // first removed line after the last new one.
  const joined = [];
  let free = 0;
  for (const [i, j] of rows) {
    if (i < 0 && free < joined.length) joined[free++][1] = j;
    else {
      joined.push([i, j]);
      if (j >= 0) free = joined.length;
    }
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
    const { depth, isHead, type } = parse(line);
    const td = { class: `line ${side}`, "--depth": depth, title: isHead ? null : type };
    return [make("td", { class: `number ${side}` }, String(at + 1)), make("td", td, lineOf(line, f, other))];
  };
  const all = [];
  let reached = 0;
  const hunks = change.hunks ?? [];
  const gap = (text) => all.push(() => make("tr", { class: "gap" }, make("td", { colspan: 4 }, text)));
  hunks.forEach((hunk, at) => {
    const [i, j, old, now, before, after, oldLeft = 0, newLeft = 0] = hunk;
    // Rows that the last hunk has shown are not shown again.
    const first = Math.max(j - before.length, reached);
    if (first > reached) gap(`${count(first - reached, "row")} as before`);
    const same = (line, k) => () => make("tr", { class: "same" }, ...cells(line, i - j + k, "", undefined), ...cells(line, k, "", undefined));
    for (let k = first; k < j; k++) all.push(same(before[k - (j - before.length)], k));
    for (const [x, y] of pairs(hunk)) {
      all.push(() => make("tr", null,
        ...cells(old[x], i + x, "old", isSame(old[x], now[y]) ? now[y] : undefined),
        ...cells(now[y], j + y, "new", isSame(old[x], now[y]) ? old[x] : undefined)));
    }
    if (oldLeft + newLeft > 0) {
      gap(`Not kept: ${count(oldLeft, "old row")} and ${count(newLeft, "new row")}, of which ${number.format(change.rows_left_out)} changed`);
    }
    const shift = i + old.length - (j + now.length);
    reached = j + now.length + newLeft;
    const next = hunks[at + 1]?.[1] ?? Infinity;
    after.forEach((line, k) => {
      const at = j + now.length + k;
      if (at >= next) return;
      all.push(() => make("tr", { class: "same" }, ...cells(line, at + shift, "", undefined), ...cells(line, at, "", undefined)));
      reached = at + 1;
    });
  });
  const table = make("table", { class: "diff", "aria-label": `@${functions[f]} before and after` },
    make("colgroup", null, make("col", { class: "number" }), make("col"), make("col", { class: "number" }), make("col")), body);
  const rows = make("div", { class: "rows", tabindex: 0, role: "region", "aria-label": `Changes of @${functions[f]}` }, table);
  const build = (next) => {
    body.append(...next.map((row) => row()));
    showChosen();
  };
  const { more, next } = moreButton(all, MOST_ROWS, build, "more row");
  const part = make("div", null, rows, more);
  next();
  return all.length > 0 ? [part] : [];
}
