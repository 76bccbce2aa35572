/**
 * Checkpoints: a signed word that the chain had this hash at this event, and that this snapshot is the
 * state there.
 *
 * A pruned log can no longer be checked from its first event; it is checked from a checkpoint instead,
 * so the checkpoint must be something nobody else can write. Each is signed with an ed25519 key that
 * lies in the data directory, readable by its owner only. Whoever holds that file can forge
 * checkpoints: an auditor keeps a copy of the public key, or of a head, elsewhere.
 *
 * What is signed is a line of text with the fields in a fixed order, never a structure (trap C20).
 * The memory log signs with a key known to everybody, so that a simulation is the same each time.
 */

import type { KeyObject } from "node:crypto";
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { type Anchor, LogFailure } from "./log.ts";

export const PRIVATE_KEY_FILE = "signing-key.pem";
export const PUBLIC_KEY_FILE = "signing-key.pub.pem";
const PRIVATE_KEY_MODE = 0o600;
const PUBLIC_KEY_MODE = 0o644;
/** The DER frame of an ed25519 private key (RFC 8410); the 32 bytes of the seed follow it. */
const PKCS8_FRAME = Buffer.from("302e020100300506032b657004220420", "hex");

export type Checkpoint = Anchor & {
  /** sha256 of the snapshot's bytes, in hex. */
  readonly snapshotHash: string;
  /** ed25519 over seq, hash and snapshotHash, in hex. */
  readonly signature: string;
};

export type CheckpointClaim = Omit<Checkpoint, "signature">;

export type Signer = {
  sign(claim: CheckpointClaim): Checkpoint;
  holds(checkpoint: Checkpoint): boolean;
};

/** A signer with a key that everybody knows. */
export function createMemorySigner(): Signer {
  const seed = Buffer.alloc(32, 7);
  return signerOf(createPrivateKey({ key: Buffer.concat([PKCS8_FRAME, seed]), format: "der", type: "pkcs8" }));
}

/** The key of this data directory; made on first use. */
export function openSigner(directory: string): Signer {
  const path = join(directory, PRIVATE_KEY_FILE);
  const stored = readIfThere(path);
  if (stored !== null) return signerOf(keyOf(path, stored, createPrivateKey));
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const publicPem = publicKey.export({ type: "spki", format: "pem" }).toString();
  writeWhole(join(directory, PUBLIC_KEY_FILE), publicPem, PUBLIC_KEY_MODE);
  writeWhole(path, privateKey.export({ type: "pkcs8", format: "pem" }).toString(), PRIVATE_KEY_MODE);
  return signerOf(privateKey);
}

/** Whether a checkpoint was signed by this directory; the public half of the key is enough. */
export function openVerifier(directory: string): (checkpoint: Checkpoint) => boolean {
  const path = join(directory, PUBLIC_KEY_FILE);
  const pem = readIfThere(path);
  if (pem === null) return () => false;
  const key = keyOf(path, pem, createPublicKey);
  return (checkpoint) => isSignedBy(key, checkpoint);
}

/** Whatever the library finds wrong with the text, to people it is one thing: the file is not the key it should be. */
function keyOf(path: string, pem: string, create: (pem: string) => KeyObject): KeyObject {
  try {
    const key = create(pem);
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch {
    // Said below.
  }
  const advice = `Put it back from a backup. Or move ${PRIVATE_KEY_FILE} and ${PUBLIC_KEY_FILE} away: a new key`;
  const price =
    "is made then, and the log is replayed from its first event, which works unless old events were pruned.";
  throw new LogFailure("corrupt", `${path} does not hold an ed25519 key. Nothing was changed. ${advice} ${price}`);
}

function signerOf(privateKey: KeyObject): Signer {
  const publicKey = createPublicKey(privateKey);
  return {
    sign: (claim) => ({ ...claim, signature: sign(null, signedText(claim), privateKey).toString("hex") }),
    holds: (checkpoint) => isSignedBy(publicKey, checkpoint),
  };
}

const isSignedBy = (key: KeyObject, checkpoint: Checkpoint): boolean =>
  verify(null, signedText(checkpoint), key, Buffer.from(checkpoint.signature, "hex"));

const signedText = ({ seq, hash, snapshotHash }: CheckpointClaim): Buffer =>
  Buffer.from(`drover checkpoint 1 ${seq} ${hash} ${snapshotHash}`, "utf8");

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** A key that is half there would be worse than none: it appears under its name only when whole. */
function writeWhole(path: string, text: string, mode: number): void {
  const temporary = `${path}.new`;
  rmSync(temporary, { force: true });
  const file = openSync(temporary, "wx", mode);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
}
