// A password that a program asks for: entered in a field of its own, and told nowhere.

import assert from "node:assert/strict";
import { choose, giveBack, run, shown, takeOver } from "./kit.mjs";

const SECRET = process.argv[3];

await run(async (agent, browser) => {
  const session = await agent.open();
  const page = await browser.page();
  await choose(page, session);
  await agent.send(session, "read -rsp 'Password: ' it; echo; echo \"got ${#it}\"");
  await shown(page, "Password:");
  const field = page.getByLabel("Password for the program");
  assert.ok(await field.isHidden(), "only whoever may type is asked");

  await takeOver(page);
  await field.waitFor();
  assert.equal(await field.getAttribute("type"), "password");
  await field.fill(SECRET);
  await page.keyboard.press("Enter");
  await shown(page, `got ${SECRET.length}`);
  await field.waitFor({ state: "hidden" });
  assert.equal(await field.inputValue(), "");

  // The same, typed into the terminal that does not show it.
  await page.locator("#terminal").click();
  await page.keyboard.type("read -rsp 'Again: ' it; echo; echo \"once more ${#it}\"\n");
  await shown(page, "Again:");
  await field.waitFor();
  await page.locator("#terminal").click();
  await page.keyboard.type(`${SECRET}\n`);
  await shown(page, `once more ${SECRET.length}`);

  await giveBack(page);
  await agent.send(session, "echo done");
  await agent.call("terminal_lines", { sessionId: session });
  await shown(page, /^done/);
  assert.ok(!(await page.content()).includes(SECRET), "the page shows it");
  assert.ok(!agent.heard.includes(SECRET), "the agent was told");
  assert.match(agent.heard, /a person typed/);
});
