// Opens pages in headless Chromium: node pages.cjs FILE.html...
//
// Prints a line for each page and colour scheme, and all faults; exits with 1 if there are any. The
// browser is $CHROMIUM; the modules playwright-core and axe-core are found by $NODE_PATH;
// screenshots are written to $SCREENSHOTS, if that is set.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const { chromium } = require("playwright-core");

const AXE = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const LARGEST = 1_000_000;
const NARROW = { width: 360, height: 800 };
const WIDE = { width: 1280, height: 900 };
const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

let faults = 0;
function fault(file, what) {
  faults += 1;
  console.error(`${path.basename(file)}: ${what}`);
}

/** A page with this file, of which everything is reported that it must not do. */
async function open(browser, file, options) {
  const context = await browser.newContext({ viewport: WIDE, ...options });
  const page = await context.newPage();
  const own = pathToFileURL(file).href;
  page.on("request", (request) => {
    if (request.url() !== own) fault(file, `requests ${request.url()}`);
  });
  page.on("console", (message) => fault(file, `console: ${message.text()}`));
  page.on("pageerror", (error) => fault(file, `script: ${error}`));
  page.on("dialog", async (dialog) => {
    fault(file, `opens a dialog: ${dialog.message()}`);
    await dialog.dismiss();
  });
  await page.goto(own);
  return page;
}

async function isInert(page, file) {
  const found = await page.evaluate(() => ({
    scripts: document.scripts.length,
    others: document.querySelectorAll("img, iframe, object, embed, link, base").length,
    handlers: Array.from(document.querySelectorAll("*")).filter((element) =>
      element.getAttributeNames().some((name) => name.startsWith("on")),
    ).length,
  }));
  if (found.scripts !== 1 || found.others !== 0 || found.handlers !== 0) {
    fault(file, `a name became markup: ${JSON.stringify(found)}`);
  }
}

/** The verdicts of the rows that are visible. */
function visible(page) {
  return page.$$eval("#all-cases tr[data-verdict]", (rows) =>
    rows.filter((row) => row.checkVisibility()).map((row) => row.dataset.verdict),
  );
}

/** From the link at the top to the search, then to the choice of a verdict. */
async function filters(page, file) {
  const all = (await visible(page)).length;
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  const focused = await page.evaluate(() => document.activeElement.id);
  if (focused !== "search") {
    fault(file, `the search is not behind the first link, but ${focused}`);
    return;
  }
  const id = await page.$eval("#all-cases tr[data-verdict=fail] th", (cell) =>
    cell.innerText.trim().split(/\s/)[0],
  );
  await page.keyboard.type(id);
  const found = (await visible(page)).length;
  const said = await page.$eval("#shown", (output) => output.textContent);
  if (found < 1 || (found === all && all > 1) || !said.startsWith(`${found} of ${all} `)) {
    fault(file, `a search for ${id} shows ${found} of ${all} rows, and says: ${said}`);
  }
  await page.keyboard.press("Control+A");
  await page.keyboard.press("Delete");
  await page.keyboard.press("Tab");
  await page.keyboard.type("fail");
  const failed = await visible(page);
  if (failed.length === 0 || failed.some((verdict) => verdict !== "fail")) {
    fault(file, `the filter for failures shows ${JSON.stringify([...new Set(failed)])}`);
  }
  await page.keyboard.type("all");
}

/** What axe finds, with everything unfolded. */
async function accessible(page, file, scheme) {
  await page.$$eval("details", (all) => all.forEach((details) => (details.open = true)));
  await page.evaluate(AXE);
  const found = await page.evaluate(() =>
    window.axe.run(document, { resultTypes: ["violations"], elementRef: false }),
  );
  for (const { id, impact, help, nodes } of found.violations) {
    const line = `${id} (${impact}), ${nodes.length} times: ${help}, as in ${nodes[0].html.slice(0, 200)}`;
    if (impact === "serious" || impact === "critical") fault(file, `${scheme}: ${line}`);
    else console.log(`${path.basename(file)}: ${scheme}: ${line}`);
  }
  await page.$$eval("details", (all) => all.forEach((details) => (details.open = false)));
}

/** Whether it is a page of `measure`, which has charts in place of cases. */
async function hasFigures(page) {
  return (await page.locator("svg.chart").count()) > 0;
}

async function shoot(page, file, name) {
  if (!process.env.SCREENSHOTS) return;
  fs.mkdirSync(process.env.SCREENSHOTS, { recursive: true });
  const target = `${path.basename(file, ".html")}-${name}.png`;
  await page.screenshot({ path: path.join(process.env.SCREENSHOTS, target) });
}

async function check(browser, file) {
  const size = fs.statSync(file).size;
  if (size >= LARGEST) fault(file, `has ${size} bytes`);
  for (const colorScheme of ["light", "dark"]) {
    const page = await open(browser, file, { colorScheme });
    await isInert(page, file);
    await shoot(page, file, colorScheme);
    const isFigures = await hasFigures(page);
    if (colorScheme === "light" && !isFigures) await filters(page, file);
    await accessible(page, file, colorScheme);
    if (!isFigures) {
      await page.locator(".failure").first().scrollIntoViewIfNeeded();
      await shoot(page, file, `${colorScheme}-failure`);
    }
    await page.setViewportSize(NARROW);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    if (width > NARROW.width) fault(file, `is ${width} pixels wide in a window of ${NARROW.width}`);
    await shoot(page, file, `${colorScheme}-narrow`);
    await page.context().close();
    console.log(`${path.basename(file)}: opened, ${colorScheme}, ${size} bytes`);
  }
  const page = await open(browser, file, { javaScriptEnabled: false });
  const figures = await hasFigures(page);
  if (await page.locator("#filter").isVisible()) fault(file, "shows a filter that needs a script");
  if (!figures && !(await page.locator("#all-cases").isVisible())) fault(file, "shows no cases without a script");
  await page.context().close();
}

async function main() {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ARGUMENTS,
  });
  try {
    for (const file of process.argv.slice(2)) await check(browser, path.resolve(file));
  } finally {
    await browser.close();
  }
  if (faults > 0) {
    console.error(`${faults} faults`);
    process.exitCode = 1;
  }
}

main();
