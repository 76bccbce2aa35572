/**
 * Rejected tasks whose webhooks are under way or resting: a caller that floods a full queue gets no flood of webhooks.
 *
 * They are in no log, so they are kept here, up to a number and a size, since a task may be as large as a body. All
 * projects share the room. Its last tenth is for those that have less than a hundredth of it, so that one project
 * that floods does not cost another its webhooks.
 */
import type { Snapshot } from "./delivery.ts";

const ROOM = { count: 1000, characters: 16 * 1024 * 1024 };

type Held = { count: number; characters: number };
export type RejectedStore = {
  /** Whether there was room for it. */
  keep(task: Snapshot): boolean;
  get(taskId: string): Snapshot | null;
  forget(taskId: string): void;
};

export function createRejectedStore(room: Held = ROOM): RejectedStore {
  const kept = new Map<string, { readonly task: Snapshot; readonly size: number }>();
  const all: Held = { count: 0, characters: 0 };
  const byProject = new Map<string, Held>();

  const heldBy = (project: string): Held => byProject.get(project) ?? { count: 0, characters: 0 };

  function add(project: string, count: number, characters: number): void {
    const own = heldBy(project);
    for (const held of [all, own]) {
      held.count += count;
      held.characters += characters;
    }
    if (own.count === 0) byProject.delete(project);
    else byProject.set(project, own);
  }

  function hasRoom(project: string, size: number): boolean {
    const own = heldBy(project);
    const isSmall = own.count + 1 <= room.count / 100 && own.characters + size <= room.characters / 100;
    const share = isSmall ? 1 : 0.9;
    return all.count + 1 <= room.count * share && all.characters + size <= room.characters * share;
  }

  return {
    keep(task) {
      const { taskId, project = "" } = task;
      const size = JSON.stringify(task).length;
      if (kept.has(taskId) || !hasRoom(project, size)) return false;
      kept.set(taskId, { task, size });
      add(project, 1, size);
      return true;
    },
    get: (taskId) => kept.get(taskId)?.task ?? null,
    forget(taskId) {
      const found = kept.get(taskId);
      if (found === undefined) return;
      kept.delete(taskId);
      add(found.task.project ?? "", -1, -found.size);
    },
  };
}
