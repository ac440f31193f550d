// Holdfast in OpenCode: one `holdfast hook` an event, and nothing of ours may ever stop the agent.
// Written by `holdfast install opencode`; `holdfast uninstall opencode` removes it.
import { spawn } from "node:child_process"

const COMMAND = __COMMAND__

function hook(event, payload, directory) {
  return new Promise((done) => {
    const child = spawn(COMMAND[0], [...COMMAND.slice(1), "hook", "--client", "opencode", event], {
      cwd: directory,
      stdio: ["pipe", "pipe", "ignore"],
    })
    let text = ""
    const late = setTimeout(() => child.kill(), 20000)
    const finish = () => {
      clearTimeout(late)
      try {
        done(JSON.parse(text || "{}"))
      } catch {
        done({})
      }
    }
    child.stdout.on("data", (piece) => (text += piece))
    child.on("error", finish)
    child.on("close", finish)
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(payload))
  })
}

export const Holdfast = async ({ directory }) => ({
  "experimental.chat.system.transform": async (input, output) => {
    const answer = await hook("session-start", { session_id: input.sessionID, cwd: directory }, directory)
    if (answer.context) output.system.push(answer.context)
  },
  "tool.execute.after": async (input, output) => {
    const answer = await hook(
      "after-tool",
      { session_id: input.sessionID, tool_name: input.tool, tool_input: input.args, tool_response: output.content ?? output.output, cwd: directory },
      directory,
    )
    if (answer.output === undefined) return
    if (Array.isArray(output.content)) output.content = [{ type: "text", text: answer.output }]
    else output.output = answer.output
  },
  "experimental.session.compacting": async (input) => {
    await hook("before-compact", { session_id: input.sessionID, cwd: directory }, directory)
  },
})
