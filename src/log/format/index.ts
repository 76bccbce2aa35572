/** What other layers may use of this room. */

export { createGathering, emptied, type Gathering, gather, gatheredBatch, gatheredBytes } from "./batch-builder.ts";
export { unpackRow } from "./batch-row.ts";
export { toHex } from "./chain.ts";
export { decodeEvent, hashOfPayload, payloadHashOf } from "./codec.ts";
