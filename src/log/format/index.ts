/** What other layers may use of this room. */

export { batchOf, createGathering, emptied, type Gathering, gather, gatheredBytes } from "./batch-builder.ts";
export { unpackRow } from "./batch-row.ts";
export { decodeEvent } from "./codec.ts";
export { hashOfPayload, payloadHashOf } from "./event-facts.ts";
