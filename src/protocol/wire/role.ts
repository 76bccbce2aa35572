/** What a token allows: `admin` may do everything; `agent` submits, `worker` runs, `viewer` looks. */
export type Role = "admin" | "agent" | "worker" | "viewer";
export const ROLES: readonly Role[] = ["admin", "agent", "worker", "viewer"];
