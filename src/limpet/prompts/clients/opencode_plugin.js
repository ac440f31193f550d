// Limpet in OpenCode: one `limpet hook` an event, and nothing of ours may ever stop the agent.
// Written by `limpet install opencode`; `limpet uninstall opencode` removes it.
import { spawn } from "node:child_process"

const COMMAND = __COMMAND__

function hook(event, payload, directory) {
  return new Promise((done) => {
    const child = spawn(COMMAND[0], [...COMMAND.slice(1), "hook", "--client", "opencode", event], {
      cwd: directory,
      stdio: ["pipe", "pipe", "ignore"],
    })
    const pieces = []
    const late = setTimeout(() => child.kill(), 20000)
    const finish = () => {
      clearTimeout(late)
      try {
        done(JSON.parse(Buffer.concat(pieces).toString() || "{}"))
      } catch {
        done({})
      }
    }
    child.stdout.on("data", (piece) => pieces.push(piece))
    child.on("error", finish)
    child.on("close", finish)
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(payload))
  })
}

export const Limpet = async ({ directory }) => {
  const sources = new Map() // why a session needs its context: it began here, or was compacted; otherwise it is resumed
  const contexts = new Map() // what a session was given. The same words until something happened, so that caches hold.
  const children = new Map() // sessions of sub-agents, with the session that began each

  const tell = (event, session, more = {}) => {
    const child = children.has(session) ? { agent_id: session, parent_session_id: children.get(session) } : {}
    return hook(event, { session_id: session, cwd: directory, ...child, ...more }, directory)
  }

  const context = async (session) => {
    const answer = await tell("session-start", session, { source: sources.get(session) ?? "resume" })
    if (answer.context) sources.set(session, "resume")
    else contexts.delete(session) // nothing to say, or no time to: asked again with the next request
    return answer.context
  }

  const compacted = (session) => {
    sources.set(session, "compact")
    contexts.delete(session)
  }

  return {
    event: async ({ event }) => {
      const { info, sessionID } = event.properties ?? {}
      if (event.type === "session.created") {
        sources.set(info.id, "startup")
        if (info.parentID) children.set(info.id, info.parentID)
      } else if (event.type === "session.compacted") {
        compacted(sessionID)
      } else if (event.type === "session.idle" && !children.has(sessionID)) {
        await tell("stop", sessionID)
      }
    },
    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      if (!sessionID) return
      if (!contexts.has(sessionID)) contexts.set(sessionID, context(sessionID))
      const found = await contexts.get(sessionID)
      if (found) output.system.push(found)
    },
    "chat.message": async ({ sessionID }, { parts }) => {
      const prompt = (parts ?? []).map((part) => part.text ?? "").join("\n")
      if ((await tell("prompt", sessionID, { prompt })).context) contexts.delete(sessionID) // somebody else changed the notepad
    },
    "tool.execute.before": async ({ tool, sessionID }, output) => {
      if (!tool.startsWith("limpet_")) return
      const answer = await tell("before-tool", sessionID, { tool_name: tool, tool_input: output.args })
      if (answer.arguments) Object.assign(output.args, answer.arguments)
    },
    "tool.execute.after": async ({ tool, sessionID, args }, output) => {
      const { outputPath, exit } = output.metadata ?? {} // of a command: where the agent put what it cut off
      const own = { output: output.output, persistedOutputPath: outputPath, is_error: Boolean(exit) }
      const answer = await tell("after-tool", sessionID, {
        tool_name: tool,
        tool_input: args,
        tool_response: output.content ?? own,
      })
      if (answer.output === undefined) return
      if (Array.isArray(output.content)) output.content = [{ type: "text", text: answer.output }]
      else output.output = answer.output
    },
    "experimental.session.compacting": async ({ sessionID }) => {
      await tell("before-compact", sessionID)
    },
    // The agent waits for this one; the event above tells also of compactions after which it does not go on by itself.
    "experimental.compaction.autocontinue": async ({ sessionID }) => compacted(sessionID),
  }
}
