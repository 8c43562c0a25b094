// The keyboard alone suffices; and a narrow window, which nothing is wider than.

import assert from "node:assert/strict";
import { choose, connected, mine, noOverflow, notMine, run, shown } from "./kit.mjs";

const focused = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.textContent);

// Presses Tab until the focus is on `wanted`; every place on the way shows that it has the focus.
async function tabTo(page, wanted, key = "Tab") {
  const way = [];
  while (!(await wanted.evaluate((node) => node === document.activeElement))) {
    await page.keyboard.press(key);
    way.push(await focused(page));
    assert.ok(way.length < 60, `never there: ${way.join(", ")}`);
    const visible = await page.evaluate(() => {
      const at = document.activeElement;
      if (at === document.body || at.closest("#terminal")) return true;
      return at.matches(":focus-visible") && getComputedStyle(at).outlineStyle !== "none";
    });
    assert.ok(visible, `no visible focus on ${way.at(-1)}`);
  }
}

await run(async (agent, browser) => {
  const session = await agent.open();
  for (const viewport of [{ width: 1280, height: 900 }, { width: 360, height: 740 }]) {
    const page = await browser.page({ viewport });
    await noOverflow(page);
    const take = page.locator("#take");

    // To the session, past the list, into the terminal, and out of it again by Tab, since it is only watched.
    await tabTo(page, page.locator("#agents").getByRole("button", { name: new RegExp(`^${session}\\b`) }));
    await page.keyboard.press("Enter");
    await shown(page, "dsh>");
    await noOverflow(page);
    await tabTo(page, page.locator("#terminal textarea"));
    await tabTo(page, page.locator("#aloud"));
    await tabTo(page, take, "Shift+Tab");

    // The terminal has every key of whoever took over, but for one.
    await page.keyboard.press("Enter");
    await mine(page);
    await page.locator("#terminal textarea").and(page.locator(":focus")).waitFor();
    await page.keyboard.type(`printf "%s\\n" "wide $((6 * 7))" ${"w".repeat(200)}\n`);
    await shown(page, /^wide 42/);
    await page.keyboard.type("echo compl");
    await page.keyboard.press("Control+u");
    await page.keyboard.press("Control+Alt+Period");
    assert.equal(await focused(page), "take");
    await noOverflow(page);
    await page.keyboard.press("Enter");
    await notMine(page);

    // The first stop of all leads past the list.
    await page.reload();
    await connected(page);
    await tabTo(page, page.locator("#skip"));
    await page.keyboard.press("Enter");
    assert.equal(await focused(page), "main");
    await page.context().close();
  }
  // Names of controls and landmarks are what a screen reader tells.
  const page = await browser.page();
  await choose(page, session);
  for (const name of ["Agents and runs"]) await page.getByRole("navigation", { name }).waitFor();
  await page.getByRole("region", { name: `Terminal ${session}` }).waitFor();
  await page.getByRole("group", { name: "Controls of the session" }).waitFor();
  await page.getByRole("button", { name: "Take over" }).click();
  await page.getByRole("status").filter({ hasText: `You type in ${session} now.` }).waitFor({ state: "attached" });
});
