/** A server of `bench/http-served.ts` in a process of its own. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

export type ServedKind = "echo" | "drover" | "wire";
export type Served = { readonly port: number; readonly pid: number; usage(): Promise<Usage>; stop(): Promise<void> };
/** CPU time of all threads and of the main one, and memory. */
export type Usage = { readonly cpuMs: number; readonly mainMs: number; readonly rss: number };

export async function serve(kind: ServedKind): Promise<Served> {
  const child: ChildProcess = fork(join(import.meta.dirname, "http-served.ts"), [kind], {
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  const nextMessage = async <Value>(): Promise<Value> => (await once(child, "message"))[0] as Value;
  const { port } = await nextMessage<{ port: number }>();
  return {
    port,
    pid: child.pid as number,
    usage() {
      const answer = nextMessage<Usage>();
      child.send({ type: "usage" });
      return answer;
    },
    async stop() {
      const ended = once(child, "exit");
      child.send({ type: "stop" });
      await ended;
    },
  };
}
