// Bethink in opencode, which has no command hooks: this plugin calls `bethink hook` when something happens, and passes on what
// it answers. Written by `bethink install --opencode`, and replaced by the next install. BETHINK_HOOKS=off switches it off.
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { homedir } from "node:os"
import { isAbsolute, join } from "node:path"

const COMMAND = ["bethink"]
const TOOLS = ["bash", "read", "edit", "write"] // after which the hook runs
const READS = TOOLS[1] // changes nothing, so that no rule forbids it
const LIMIT = 8000 // milliseconds; the hook keeps to a shorter one of its own

const data = join(process.env.XDG_DATA_HOME || join(homedir(), ".local", "share"), "opencode")
const database = process.env.OPENCODE_DB || "opencode.db"
const transcript = isAbsolute(database) ? database : join(data, database)

// A hook that fails, is missing or takes too long answers "": opencode never notices.
function hook(event, input, directory, wait) {
  return new Promise((resolve) => {
    if (process.env.BETHINK_HOOKS === "off") return resolve("")
    let child
    try {
      const args = [...COMMAND.slice(1), "hook", event, "--host", "opencode"]
      // Detached, so that what is to be noted at the end of a run is noted even if opencode ends before.
      child = spawn(COMMAND[0], args, { cwd: directory, detached: true, stdio: ["pipe", wait ? "pipe" : "ignore", "ignore"] })
    } catch {
      return resolve("")
    }
    let out = ""
    const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT)
    const done = (text) => {
      clearTimeout(timer)
      resolve(text)
    }
    child.on("error", () => done(""))
    child.on("close", () => done(out))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify({ ...input, cwd: directory, transcript_path: transcript }))
    if (wait) child.stdout.setEncoding("utf8").on("data", (text) => (out += text))
    else {
      child.unref()
      timer.unref?.()
      done("")
    }
  })
}

async function ask(event, input, directory, member = "context") {
  try {
    const text = JSON.parse((await hook(event, input, directory, true)) || "{}")[member]
    return typeof text === "string" ? text : ""
  } catch {
    return ""
  }
}

// The file of enforced rules: without it no call can be denied, and no process is started before one.
function enforced() {
  const base = process.env.XDG_DATA_HOME || join(homedir(), ".local", "share")
  return existsSync(join(process.env.BETHINK_HOME || join(base, "bethink"), "enforced.json"))
}

export const Bethink = async ({ directory }) => {
  const begun = new Map() // session → how it began, until it was told what there is to know
  const known = new Set()
  const helpers = new Set() // sessions of sub-agents, whose prompts no person wrote

  return {
    event: async ({ event }) => {
      const info = event.properties?.info
      const session = event.properties?.sessionID
      if (event.type === "session.created" && info?.id) {
        begun.set(info.id, "startup")
        if (info.parentID) helpers.add(info.id)
      } else if (event.type === "session.idle" && session) {
        await hook("stop", { session_id: session }, directory, false)
      } else if (event.type === "session.compacted" && session) {
        begun.set(session, "compact")
        await hook("post-compact", { session_id: session }, directory, false)
      }
    },

    "chat.message": async ({ sessionID }, { message, parts }) => {
      if (helpers.has(sessionID)) return
      const said = parts.filter((part) => part.type === "text" && !part.synthetic)
      const prompt = said.map((part) => part.text).join("\n")
      const contexts = []
      if (begun.has(sessionID) || !known.has(sessionID)) {
        const source = begun.get(sessionID) ?? "resume"
        begun.delete(sessionID)
        known.add(sessionID)
        contexts.push(await ask("session-start", { session_id: sessionID, source }, directory))
      }
      if (prompt.trim()) contexts.push(await ask("prompt", { session_id: sessionID, prompt, source: "user" }, directory))
      contexts.filter(Boolean).forEach((text, at) => {
        // Parts are kept in the order of their ids.
        const id = `${parts[parts.length - 1]?.id ?? "prt_bethink"}r${at}`
        parts.push({ id, sessionID, messageID: message.id, type: "text", text, synthetic: true })
      })
    },

    "tool.execute.before": async ({ tool, sessionID, callID }, output) => {
      if (!TOOLS.includes(tool) || tool === READS || !enforced()) return
      const call = { tool_name: tool, tool_input: output?.args, tool_use_id: callID }
      const reason = await ask("tool-before", { session_id: sessionID, ...call }, directory, "deny")
      if (reason) throw new Error(reason)
    },

    // The one place where opencode lets us speak after a tool: what is added to its output. The exit code is not in the output.
    "tool.execute.after": async ({ tool, sessionID, callID, args }, output) => {
      if (!TOOLS.includes(tool) || typeof output?.output !== "string") return
      const call = { tool_name: tool, tool_input: args, tool_use_id: callID, tool_response: output.output, exit: output.metadata?.exit }
      const context = await ask("tool", { session_id: sessionID, ...call }, directory)
      if (context) output.output += `\n\n${context}`
    },

    "experimental.session.compacting": async ({ sessionID }, output) => {
      const context = await ask("pre-compact", { session_id: sessionID, trigger: "auto" }, directory)
      if (context) output.context.push(context)
    },
  }
}
