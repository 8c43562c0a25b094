// Output, names and cards are text: no markup, no title, no clipboard, no link comes of them.

import assert from "node:assert/strict";
import { choose, giveBack, origin, run, shown, takeOver } from "./kit.mjs";

const IMAGE = '<img src=x onerror="document.title=1">';

await run(async (agent, browser) => {
  const session = await agent.open("<b>bold</b><img src=x>");
  const page = await browser.page();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin });
  await choose(page, session);
  await page.evaluate(() => navigator.clipboard.writeText("of the person"));
  const title = await page.title();

  // As text first; then a title, a clipboard, a link, a notification, each ended by either end.
  await agent.send(session, `printf '%s\\n' '${IMAGE}'`);
  await shown(page, "<img src=x onerror=");
  for (const end of ["\\a", "\\e\\\\"]) {
    await agent.send(session, [
      `printf '\\e]0;title${end}\\e]2;title${end}\\e]1;icon${end}\\e]52;c;c3RvbGVu${end}\\e]9;told${end}'`,
      `printf '\\e]777;notify;a;b${end}\\e]8;;javascript:document.title=1${end}a link\\e]8;;${end}\\n'`,
      `printf '\\eP1$r0m\\e\\\\\\e_application\\e\\\\\\e^privacy\\e\\\\\\eXstring\\e\\\\'; echo over`,
    ].join("; "));
  }
  await shown(page, "a link");
  await page.locator(".xterm-rows", { hasText: "a link" }).getByText("a link").last().click({ force: true });

  assert.equal(await page.title(), title);
  assert.equal(await page.locator("img, iframe, b, #terminal a, .card a").count(), 0);
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "of the person");
  await page.locator("#session-title", { hasText: "<b>bold</b><img src=x>" }).waitFor();
  await page.locator(".card pre", { hasText: IMAGE }).first().waitFor();
  await page.locator("#commands code", { hasText: IMAGE }).first().waitFor();
  assert.equal(page.context().pages().length, 1, "no window was opened");

  // A question to the terminal is the session's to answer: nothing is typed by the page of whoever may type.
  await takeOver(page);
  await page.keyboard.type("printf '\\e[6n\\e[c\\e]11;?\\a'; echo asked\n");
  await shown(page, /asked$/);
  await giveBack(page);
  await agent.send(session, "echo done");
  assert.match(agent.heard, /a person typed[^\n]*echo asked/);
  assert.doesNotMatch(agent.heard, /a person typed[^\n]*(\d;\d+R|;2c|rgb:)/);
});
