/**
 * What every request must pass, whatever it asks for: it is for this server, and in a protocol that is spoken here.
 */
import type { IncomingHttpHeaders } from "node:http";
import { sentence } from "../core/refusal.ts";
import { PROTOCOL_HEADER, protocolRefusal } from "../protocol/index.ts";
import type { Door } from "./door.ts";
import { ServerRefusal } from "./problem.ts";

/** Why not, or null. */
export type Knock = (headers: IncomingHttpHeaders) => ServerRefusal | null;

export const createKnock =
  (door: () => Door): Knock =>
  (headers) =>
    door()(headers) ?? otherProtocol(headers[PROTOCOL_HEADER]);

function otherProtocol(asked: string | string[] | undefined): ServerRefusal | null {
  const refusal = asked === undefined ? null : protocolRefusal(asked);
  if (refusal === null) return null;
  const { type: _, ...details } = refusal;
  return new ServerRefusal("unsupported_protocol", sentence(refusal), { details });
}
