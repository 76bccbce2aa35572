/**
 * A proxy between a program and a server on loopback that does what networks do: loses answers, and goes silent.
 */
import { connect, createServer, type Socket } from "node:net";
import { type Listening, listening } from "./loopback.ts";

export type TcpProxy = Listening & {
  /**
   * The next answer is lost, or the one behind so many that pass: the request gets there, and the connection is cut in
   * place of the answer. Resolves when that has happened.
   */
  loseAnswer(passing?: number): Promise<void>;
  /** How often something was sent to the server so far. */
  sent(): number;
  /** From now on nothing passes on the connections that stand, either way, and nobody is told. New ones pass. */
  silence(): void;
  /**
   * From now on nothing passes, or no answers, on any connection, and nobody is told; "none" ends that: connections of
   * that time are closed, and new ones pass.
   */
  cut(way: "both" | "answers" | "none"): void;
};

export async function startProxy(port: number): Promise<TcpProxy> {
  const open = new Set<Socket>();
  /** How many answers pass before one is lost. */
  let passing = Number.POSITIVE_INFINITY;
  let sent = 0;
  let lost = Promise.withResolvers<void>();
  let cut: "both" | "answers" | "none" = "none";
  const pairs = new Map<Socket, Socket>();
  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on("error", () => {});
      socket.once("close", () => {
        open.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    pairs.set(near, far);
    near.once("close", () => pairs.delete(near));
    if (cut !== "both") near.pipe(far);
    near.on("data", () => sent++);
    far.on("data", (chunk) => {
      if (cut !== "none") return;
      if (passing-- > 0) return void near.write(chunk);
      passing = Number.POSITIVE_INFINITY;
      lost.resolve();
      near.destroy();
    });
  });
  const listens = await listening(server);
  return {
    ...listens,
    loseAnswer: (count = 0) => {
      passing = count;
      lost = Promise.withResolvers();
      return lost.promise;
    },
    sent: () => sent,
    silence: () => {
      for (const socket of open) {
        socket.unpipe();
        socket.removeAllListeners("data");
        socket.pause();
      }
    },
    cut: (way) => {
      cut = way;
      if (way === "both") for (const [near, far] of pairs) near.unpipe(far).resume();
      if (way === "none") for (const socket of open) socket.destroy();
    },
  };
}
