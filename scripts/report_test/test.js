// Uses the pages of `anfora opt --report` and `anfora diff --report` in a browser. `scripts/report-test` runs this.
"use strict";

const assert = require("node:assert/strict");
const { execFileSync, spawnSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const { chromium } = require("playwright-core");

const keep = process.argv[2] === "--keep" ? process.argv[3] : null;
const folder = keep ?? fs.mkdtempSync(path.join(os.tmpdir(), "anfora-report-"));
fs.mkdirSync(folder, { recursive: true });

const PIPELINE =
  "FoldConstant,fixpoint<4>(CanonicalizeBindings,EliminateCommonSubexpr,DeadCodeElimination),FuseOps,InlineFunctions";

/** Runs a pipeline over a program, and returns the path of its report. */
function report(name, program, options, status = 0) {
  const page = path.join(folder, `${name}.html`);
  const done = spawnSync(process.env.ANFORA, ["opt", program, "--emit", "none", "--report", page, ...options], { encoding: "utf8" });
  assert.equal(done.status, status, done.stderr);
  return page;
}

/** Opens a page on a screen, and checks at the end that it wrote and requested nothing. */
async function open(browser, page, { width = 1280, height = 900, colorScheme = "light" } = {}, use) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme });
  const tab = await context.newPage();
  const problems = [];
  tab.on("console", (message) => problems.push(`console: ${message.text()}`));
  tab.on("pageerror", (error) => problems.push(`error: ${error.stack}`));
  const url = pathToFileURL(page).href;
  tab.on("request", (request) => {
    if (request.url().split("#")[0] !== url) problems.push(`request: ${request.url()}`);
  });
  await tab.goto(url);
  await use(tab);
  assert.deepEqual(problems, []);
  const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `the page is ${wide} pixels too wide for ${width}`);
  await context.close();
}

const text = (tab, selector) => tab.locator(selector).innerText();
const pass = (tab, name) => tab.locator(`#bar .pass[aria-label^="${name}:"]`).first();

/** The five parts, each clicked and read. */
async function byMouse(tab) {
  // 1. The bar: its colours, rounds and sequences; a click chooses a pass.
  await tab.locator("#bar .pass.changed").first().waitFor();
  assert.ok((await tab.locator("#bar .pass.unchanged").count()) > 0);
  assert.equal(await tab.locator("#bar .pass.skipped").count(), 1);
  assert.match(await text(tab, "#bar"), /fixpoint<4>[\s\S]*round 1[\s\S]*round 2/);
  assert.match(await text(tab, "#summary"), /7 changes|\d+ passes · \d+ changes/);
  await pass(tab, "FoldConstant").click();
  // 2. What the pass changed: rows side by side, operators, statistics.
  assert.match(await text(tab, "#step"), /1 · FoldConstant[\s\S]*changed[\s\S]*OPERATORS[\s\S]*add/i);
  const row = tab.locator("#step tr", { hasText: "%twice" }).first();
  assert.match(await row.locator("td.line.old").innerText(), /let %twice = multiply\(%x, %one\);/);
  assert.match(await row.locator("td.line.new").innerText(), /let %twice = multiply\(%x, 1f\);/);
  assert.equal(await row.locator("td.line.new mark").innerText(), "1f");
  // A name in a row leads to 3., its history, and 4., its neighbours.
  await row.locator('td.new a[data-name="%twice"]').click();
  assert.match(await text(tab, "#history"), /History of %twice[\s\S]*In the program before the first pass[\s\S]*Changed by[\s\S]*FoldConstant/);
  const node = tab.locator("#graph .node", { hasText: "exp" });
  assert.match(await text(tab, "#graph"), /The program after 1 · FoldConstant/);
  await node.click();
  assert.match(await text(tab, "#history"), /History of %unused[\s\S]*Removed by[\s\S]*DeadCodeElimination/);
  // An event in the history leads to its pass.
  await tab.locator("#history button", { hasText: "DeadCodeElimination" }).click();
  assert.match(await text(tab, "#step"), /DeadCodeElimination[\s\S]*%unused/);
  assert.match(await tab.locator("#step .statistics").innerText(), /\d/);
  // Names that are no identifiers, and texts that look like HTML, are text.
  await pass(tab, "FoldConstant").click();
  await tab.locator(`#step td.new a[data-name='%"a name, with %signs & <marks>"']`).first().click();
  assert.match(await text(tab, "#history"), /a name, with %signs & <marks>/);
  // 5. The run: memory, pipeline, command.
  const run = await text(tab, "#run");
  assert.match(run, /MEMORY OF THE PROGRAM[\s\S]*From [\d.]+ \w+ to/i);
  assert.ok(run.includes(PIPELINE), run);
  assert.match(run, /anfora opt .*program\.anf .*--report /);
  assert.match(run, /bindings\s+\d+ → \d+/);
  await tab.locator(".chart").click({ position: { x: 5, y: 60 } });
  await tab.locator("#run button", { hasText: "copy" }).first().click();
}

/** The same parts without a mouse. */
async function byKeyboard(tab) {
  const focused = () => tab.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.id);
  await tab.locator("#bar .pass.changed").first().waitFor();
  // 1. Keys go from change to change, and from pass to pass in the bar.
  await tab.keyboard.press("n");
  assert.match(await text(tab, "#step-title"), /· (?!FoldConstant)/);
  await tab.keyboard.press("p");
  assert.equal(await text(tab, "#step-title"), "1 · FoldConstant");
  await tab.locator('#bar [tabindex="0"]').focus();
  await tab.keyboard.press("ArrowRight");
  await tab.keyboard.press("ArrowRight");
  assert.match(await focused(), /^CanonicalizeBindings:/);
  assert.match(await text(tab, "#step-title"), /2 · CanonicalizeBindings/);
  await tab.keyboard.press("Home");
  await tab.keyboard.press("End");
  assert.match(await focused(), /^InlineFunctions:/);
  // The search finds passes and bindings.
  await tab.keyboard.press("/");
  assert.equal(await focused(), "query");
  await tab.keyboard.type("foldc");
  assert.ok((await tab.locator("#bar .pass.missed").count()) > 3);
  await tab.keyboard.press("Enter");
  assert.equal(await text(tab, "#step-title"), "1 · FoldConstant");
  await tab.keyboard.press("Escape");
  await tab.keyboard.press("/");
  await tab.keyboard.type("twice");
  assert.match(await text(tab, "#matches"), /%twice/);
  await tab.keyboard.press("ArrowDown");
  await tab.keyboard.press("ArrowUp");
  await tab.keyboard.press("Enter");
  assert.match(await text(tab, "#history"), /History of %twice/);
  await tab.keyboard.press("Escape");
  // 2. The rows can be reached and scrolled; the name that a row binds is a link.
  await tab.locator("#step .rows").first().focus();
  await tab.keyboard.press("Tab");
  await tab.keyboard.press("Enter");
  assert.match(await text(tab, "#history"), /History of %/);
  // 3. and 4. Keys go from node to node, and choose one.
  await tab.keyboard.press("/");
  await tab.keyboard.type("twice");
  await tab.keyboard.press("Enter");
  await tab.locator("#graph .node.centre").focus();
  await tab.keyboard.press("ArrowDown");
  assert.doesNotMatch(await focused(), /%twice,/);
  await tab.keyboard.press("Enter");
  assert.doesNotMatch(await text(tab, "#history-title"), /%twice/);
  await tab.locator("#history button").first().focus();
  await tab.keyboard.press("Enter");
  // 5. The buttons of the run.
  await tab.locator("#run button").first().focus();
  await tab.keyboard.press("Enter");
}

/** Every control has a name for people who hear the page. */
async function isNamed(tab) {
  const nameless = await tab.evaluate(() =>
    [...document.querySelectorAll("button, a[href], input, [role=button], [tabindex='0']")]
      .filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length))
      .map((e) => e.outerHTML.slice(0, 120)));
  assert.deepEqual(nameless, []);
}

/** Writes two programs and the page of their differences. */
function differences() {
  const body = (operator, constant, extra) => `def @main(%x: Tensor[(4,), float32]) {
  let %"<b>&" = multiply(%x, dense<Tensor[(4,), float32]>[1, 1, 1, ${constant}]);
${extra}  let %sum = ${operator}(%"<b>&", %x);
  %sum
}
`;
  const helper = (name) => `def @${name}(%p: Tensor[(4,), float32]) { exp(%p) }\n`;
  const [old, now] = [path.join(folder, "old.anf"), path.join(folder, "new.anf")];
  fs.writeFileSync(old, body("add", 2, "") + helper("only_old"));
  fs.writeFileSync(now, body("subtract", 3, "  let %more = tanh(%x);\n") + helper("same").replace("exp", "tanh"));
  const page = path.join(folder, "diff.html");
  const done = spawnSync(process.env.ANFORA, ["diff", old, now, "--report", page], { encoding: "utf8" });
  assert.equal(done.status, 1, done.stderr);
  return page;
}

/** The page of differences: rows, kinds, search, keys. */
async function differencesAreUsed(tab) {
  assert.match(await text(tab, "#summary"), /\d+ differences in \d+ functions/);
  const rows = tab.locator("#differences tbody tr");
  const row = tab.locator("#differences tr", { hasText: "operator" }).first();
  assert.match(await row.innerText(), /%sum/);
  assert.equal(await row.locator("td.old mark").innerText(), "add");
  assert.equal(await row.locator("td.new mark").innerText(), "subtract");
  assert.match(await text(tab, "#differences"), /%"<b>&"/);
  const added = tab.locator("#differences tr.added", { hasText: "%more" });
  assert.match(await added.innerText(), /tanh\(%x\)/);
  // A kind is hidden and shown again.
  const all = await rows.count();
  await tab.locator(".kind.added").click();
  assert.equal(await added.count(), 0);
  assert.ok((await rows.count()) < all);
  await tab.locator(".kind.added").click();
  assert.equal(await rows.count(), all);
  // The search leaves the rows with a name or a value.
  await tab.keyboard.press("/");
  await tab.keyboard.type("subtract");
  assert.equal(await rows.count(), 1);
  await tab.locator("#query").fill("nothing has this");
  assert.match(await text(tab, "#differences"), /No difference has this kind and text/);
  await tab.locator("#query").fill("");
  await tab.keyboard.press("Escape");
  // Keys go from function to function.
  await tab.keyboard.press("n");
  const focused = () => tab.evaluate(() => document.activeElement.textContent);
  assert.match(await focused(), /@main/);
  await tab.keyboard.press("n");
  assert.doesNotMatch(await focused(), /@main/);
  await tab.keyboard.press("p");
  await tab.keyboard.press("Enter");
  assert.equal(await tab.locator("details.function").first().getAttribute("open"), null);
  await tab.keyboard.press("Enter");
  assert.match(await text(tab, "#run"), /old\.anf[\s\S]*new\.anf[\s\S]*anfora diff .*--report/);
}

async function test() {
  const program = path.join(__dirname, "program.anf");
  const page = report("program", program, ["--passes", PIPELINE, "--disable", "FuseOps"]);
  const failed = report("failed", program, ["--passes", 'CanonicalizeBindings,BindParams{function=main,params="%q=1f"}'], 1);
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
  await open(browser, page, {}, byMouse);
  await open(browser, page, {}, byKeyboard);
  await open(browser, failed, {}, async (tab) => {
    await pass(tab, "BindParams").click();
    assert.match(await text(tab, "#step"), /failed[\s\S]*there is no parameter `%q`/);
  });
  const different = differences();
  await open(browser, different, {}, differencesAreUsed);
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1280, 400]) {
      await open(browser, different, { width, height: width === 400 ? 800 : 900, colorScheme }, async (tab) => {
        await isNamed(tab);
        assert.ok(await tab.locator("#differences tr", { hasText: "subtract" }).first().isVisible());
        if (keep) await tab.screenshot({ path: path.join(folder, `diff-${colorScheme}-${width}.png`), fullPage: true });
      });
    }
  }
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1280, 400]) {
      await open(browser, page, { width, height: width === 400 ? 800 : 900, colorScheme }, async (tab) => {
        await isNamed(tab);
        await tab.locator('#step td.new a[data-name="%twice"]').first().click();
        assert.match(await text(tab, "#history"), /History of %twice/);
        const paper = await tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
        const [red] = paper.match(/\d+/g);
        assert.equal(colorScheme === "dark", red < 128, paper);
        if (keep) await tab.screenshot({ path: path.join(folder, `${colorScheme}-${width}.png`), fullPage: true });
      });
    }
  }
  // A large model: the page is small, and what is looked at is built when it is looked at.
  const large = path.join(folder, "large.anf");
  execFileSync(process.env.ANFORA, ["gen", "chain", "5000", "-o", large]);
  const ofLarge = report("large", large, ["-O3"]);
  const size = fs.statSync(ofLarge).size;
  assert.ok(size < 2e6, `the report of 5,000 bindings has ${size} bytes`);
  await open(browser, ofLarge, {}, async (tab) => {
    await tab.locator("#bar .pass.changed").first().click();
    await tab.locator("#step td.line").first().waitFor();
    assert.ok((await tab.locator("#step tr").count()) <= 1300);
  });
  await browser.close();
  if (!keep) fs.rmSync(folder, { recursive: true });
  console.log("the report: five parts, by mouse and keyboard, on two screens in two colour schemes; the differences of two programs");
}

test().catch((error) => {
  console.error(error);
  process.exit(1);
});
