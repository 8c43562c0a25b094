// A person watches a send that runs, takes over, types, gives back; and the agent hears of it.

import assert from "node:assert/strict";
import { choose, giveBack, row, run, shown, takeOver } from "./kit.mjs";

await run(async (agent, browser) => {
  const session = await agent.open("main");
  const page = await browser.page();
  await choose(page, session);
  await shown(page, "dsh>");

  // A send that runs is seen as it goes.
  const running = agent.send(session, "echo begun; until [ -e never ]; do sleep 0.05; done");
  await shown(page, /^begun/);
  await page.locator("#session-live-text", { hasText: /^\(\d+ bytes\)$/ }).waitFor();
  await page.locator(".card[data-state=running] .card-title", { hasText: /^\(\d+ bytes\)$/ }).waitFor();

  // Somebody else watches too.
  const other = await browser.page();
  await choose(other, session);
  await shown(other, /^begun/);

  // While a person has it, the agent's calls fail; the send that runs goes on, and ends by the person's hand.
  await takeOver(page);
  await other.locator("#session-lease", { hasText: "taken over by somebody else" }).waitFor();
  assert.ok(await other.locator("#take").isDisabled());
  assert.equal((await agent.call("terminal_signal", { sessionId: session, signal: "SIGTERM" })).code, "LEASE_HELD");
  await page.getByRole("button", { name: "Ctrl-C" }).click();
  assert.match((await running).text, /\[exit: 130\]\n\[wait: stdin_read\]/);
  await page.locator("#session-live").waitFor({ state: "hidden" });
  await page.locator("#commands tr", { hasText: "echo begun" }).locator("td.wrong", { hasText: "exit 130" }).waitFor();

  const refused = await agent.send(session, "echo never typed");
  assert.equal(refused.code, "LEASE_HELD", refused.text);
  await page.locator("#terminal").click();
  await page.keyboard.type("echo by $((1 + 1)) hands\n");
  await shown(page, /^by 2 hands/);
  await shown(other, /^by 2 hands/);

  await giveBack(page);
  await other.locator("#session-lease").waitFor({ state: "hidden" });
  const next = await agent.send(session, "echo again");
  assert.match(next.text, /\nagain\n[^]*\[exit: 0\]/);
  assert.match(agent.heard, /a person typed[^]*echo by \$\(\(1 \+ 1\)\) hands/);
  assert.equal(await row(page, "never typed").count(), 0);

  // What is typed without the lease goes nowhere.
  await page.locator("#terminal").click();
  await page.keyboard.type("echo lost\n");
  await agent.send(session, "echo last");
  await shown(page, /^last/);
  assert.equal(await row(page, "lost").count(), 0);

  // A page that is loaded again shows the same session; its lease went with its connection.
  await takeOver(page);
  await page.reload();
  await page.locator("#session-title", { hasText: session }).waitFor();
  await shown(page, /^by 2 hands/);
  await other.locator("#session-lease").waitFor({ state: "hidden" });
  await takeOver(other);
  await page.locator("#session-lease", { hasText: "taken over by somebody else" }).waitFor();
  await giveBack(other);

  // The end is seen, and what was there last remains.
  await agent.call("terminal_close", { sessionId: session });
  await page.locator("#session-status", { hasText: /closed|exit|SIG/ }).waitFor();
  assert.ok(await page.locator("#take").isDisabled());
  await shown(page, /^by 2 hands/);
});
