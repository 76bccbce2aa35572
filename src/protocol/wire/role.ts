/** What a token allows: `admin` may do everything; `agent` submits, `worker` runs, `viewer` looks. */
export type Role = "admin" | "agent" | "worker" | "viewer";
export const ROLES: readonly Role[] = ["admin", "agent", "worker", "viewer"];

/** What every token of an attempt begins with: it is good for what that attempt may do, and no longer than it. */
export const ATTEMPT_TOKEN = "drover-attempt.";
/** All of it: the task in base64url, the attempt, and a code over both. */
export const ATTEMPT_TOKEN_FORM: RegExp = /^drover-attempt\.([\w-]{1,1024})\.(\d{1,10})\.([\w-]{43})$/;
