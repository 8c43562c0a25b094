// The page amid work, as the README shows it. The file named by PICTURE, where there is one, becomes the picture.

import { choose, run, shown, takeOver } from "./kit.mjs";

await run(async (agent, browser) => {
  const build = await agent.open("build");
  const service = await agent.open("service");
  await agent.call("terminal_resize", { sessionId: build, cols: 110, rows: 22 });
  const page = await browser.page({ viewport: { width: 1280, height: 860 }, colorScheme: "light" });
  await choose(page, build);
  await agent.send(build, "cd /usr; clear; ls --color=always -l");
  await agent.send(build, "ls --color=always -d no/such/folder");
  await agent.send(build, "cd /usr/share/doc; ls | wc -l");
  await agent.send(service, "tail -f /dev/null", { run_in_background: true });
  await page.locator(".job", { hasText: "tail -f" }).waitFor();
  await agent.send(build, "read -p 'Delete 12 old packages? [y/N] ' answer; echo \"answer: $answer\"");
  await shown(page, "Delete 12 old packages?");
  await takeOver(page);
  await page.keyboard.type("n");
  await shown(page, "[y/N] n");
  if (process.env.PICTURE) await page.screenshot({ path: process.env.PICTURE });
});
