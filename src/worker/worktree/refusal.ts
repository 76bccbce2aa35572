/** Why an attempt cannot have a workspace, and what is to become of its task. */

/** Thrown when an attempt cannot have a workspace. */
export class WorkspaceRefusal extends Error {
  override readonly name: string = "WorkspaceRefusal";
  readonly kind: "permanent" | "failed" | "requeue";
  constructor(kind: "permanent" | "failed" | "requeue", message: string) {
    super(message);
    this.kind = kind;
  }
}

/** One that no further attempt would change. */
export const refused = (message: string): WorkspaceRefusal => new WorkspaceRefusal("permanent", message);
