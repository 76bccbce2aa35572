/**
 * A client whose calls travel together, at a server that answers each as a test says.
 */
import { type Client, createClient } from "../../src/client/client.ts";
import type { ClientOptions } from "../../src/client/read-options.ts";
import type { BulkBody, BulkCall } from "../../src/protocol/index.ts";
import { answers, type Heard, type Step, startScript } from "./script-server.ts";

export const task = { agentId: "ann", action: "build" };
export const submitted = (id: string): object => ({ taskId: id, state: "queued" });
export const idIn = ({ body, id }: BulkCall): string => id ?? (body as { id: string } | undefined)?.id ?? "";
export const callsIn = ({ url, body }: Heard): readonly BulkCall[] =>
  url === "/bulk" ? (body as BulkBody).calls : [{ call: "submit", body }];
/** Answers a task by itself, and each item of a bulk as told; what nothing is told of is taken. */
export const serves =
  (told: (call: BulkCall) => object | undefined = () => undefined): Step =>
  (response, heard) => {
    const each = callsIn(heard).map((call) => told(call) ?? { status: 202, body: submitted(idIn(call)) });
    answers(200, heard.url === "/bulk" ? { answers: each } : submitted(idIn(callsIn(heard)[0] as BulkCall)))(
      response,
      heard,
    );
  };

export type Story = { readonly client: Client; readonly heard: readonly Heard[]; readonly rests: number[] };
export async function story(
  steps: readonly Step[],
  told: (story: Story) => Promise<void>,
  options: ClientOptions = {},
): Promise<void> {
  await using server = await startScript(...steps);
  const rests: number[] = [];
  const rest = async (ms: number): Promise<void> => void rests.push(ms);
  await told({ client: createClient({ url: server.url, rest, ...options }), heard: server.heard, rests });
}
export const together = (client: Client, ids: readonly string[]): Promise<unknown[]> =>
  Promise.all(ids.map((id) => client.submit({ ...task, id })));
export const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `t${index}`);
