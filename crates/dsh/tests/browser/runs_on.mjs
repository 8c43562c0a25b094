// Jobs, past runs, a connection that is lost, and more output than anybody can read.

import assert from "node:assert/strict";
import { Agent, choose, connected, giveBack, run, shown, takeOver } from "./kit.mjs";

await run(async (agent, browser) => {
  const session = await agent.open();
  const page = await browser.page();
  await choose(page, session);

  // A job is seen, and killed.
  await agent.send(session, "echo begun; sleep 1000", { run_in_background: true });
  await shown(page, /^begun/);
  const job = page.locator(".job", { hasText: "sleep 1000" });
  await job.getByRole("button", { name: /^Kill/ }).click();
  await job.locator(".job-state", { hasText: "killed" }).waitFor();
  assert.ok(await job.getByRole("button").isHidden());

  // Much more than the page could draw: it follows by pictures, answers meanwhile, and shows the end.
  const flood = agent.send(session, "head -c 50000000 /dev/zero | tr '\\0' 'x' | fold -w 79; echo; echo flooded");
  await shown(page, "xxxxxxxxxx");
  await page.getByRole("button", { name: "Show past runs" }).click();
  await takeOver(page);
  await giveBack(page);
  await flood;
  await shown(page, /^flooded/);

  // An agent that is gone is a run of the past.
  const earlier = await Agent.connect();
  const gone = await earlier.open();
  await earlier.send(gone, "echo of the past");
  await earlier.close();
  await page.locator("#agents > li").nth(1).waitFor({ state: "detached" });
  await page.locator("#show-runs").click();
  await page.locator("#runs li").nth(1).waitFor();
  await page.locator("#runs button").first().click();
  await page.locator("#log-title", { hasText: "Run of" }).waitFor();
  await page.locator(".card pre", { hasText: "of the past" }).waitFor();
  await page.reload();
  await page.locator(".card pre", { hasText: "of the past" }).waitFor();

  // A page whose connection was lost comes back by itself, to the session that it watched.
  await page.close();
  const watching = await browser.page();
  let cut;
  await watching.routeWebSocket("**/live", (socket) => {
    const server = socket.connectToServer();
    cut = () => Promise.all([socket.close({ code: 1001 }), server.close()]);
  });
  await watching.reload();
  await connected(watching);
  await choose(watching, session);
  await shown(watching, /^flooded/);
  await takeOver(watching);
  await cut();
  await watching.locator("#connection[data-state=lost]").waitFor();
  await agent.send(session, "echo meanwhile");
  await connected(watching);
  await shown(watching, /^meanwhile/);
  await takeOver(watching);
});
