#!/usr/bin/env node
// Runs Limpet, a Python program, for people who have npm at hand: `npx limpet install claude-code`.
// It takes the first of uvx, pipx and an installed `limpet` of the same version that it can start.
"use strict";
const { spawn, spawnSync } = require("node:child_process");
const { version } = require("./package.json");

const wanted = `limpet==${version}`;
const ways = [
  ["uvx", ["--from", wanted, "limpet"]],
  ["pipx", ["run", "--spec", wanted, "limpet"]],
];

function starts(command) {
  const tried = spawnSync(command, ["--version"], { encoding: "utf8" });
  return tried.status === 0 ? tried.stdout.trim() : null;
}

function way() {
  for (const [command, words] of ways) if (starts(command) !== null) return [command, words];
  const installed = starts("limpet");
  if (installed !== null && installed.split(" ").includes(version)) return ["limpet", []];
  return null;
}

const chosen = way();
if (chosen === null) {
  console.error(
    `limpet: this needs uv or pipx, which bring Python programs, and neither can be started.\n` +
      `Install one of them, or Limpet itself (Python 3.11 or newer): pip install ${wanted}`,
  );
  process.exit(127);
}
const child = spawn(chosen[0], [...chosen[1], ...process.argv.slice(2)], { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (problem) => {
  console.error(`limpet: ${chosen[0]} could not be started: ${problem.message}`);
  process.exit(126);
});
child.on("exit", (code, signal) => {
  process.removeAllListeners(signal ?? "exit");
  if (signal) process.kill(process.pid, signal);
  else process.exit(code ?? 1);
});
