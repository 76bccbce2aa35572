/**
 * Questions that stand before everything else: a dialog of the browser, so focus and Escape are right by themselves.
 */
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { createStore, type Store, useStore } from "../data/store.ts";
import { steady } from "../data/words.ts";

export function Dialog({
  label,
  isNarrow = false,
  onClose,
  onSubmit,
  children,
}: {
  label: string;
  isNarrow?: boolean;
  onClose: () => void;
  onSubmit: () => void;
  children: ComponentChildren;
}): JSX.Element {
  const box = useRef<HTMLDialogElement>(null);
  const isOver = useRef(false);
  useLayoutEffect(() => {
    const dialog = box.current;
    dialog?.showModal();
    return () => {
      // Only one that is closed while it is there gives the focus back. That it was is told later, and is no answer.
      isOver.current = true;
      dialog?.close();
    };
  }, []);
  return (
    <dialog
      ref={box}
      class={isNarrow ? "dialog is-narrow" : "dialog"}
      aria-label={label}
      onClose={() => (isOver.current ? undefined : onClose())}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit();
        }}
      >
        {children}
      </form>
    </dialog>
  );
}

type Question = {
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  readonly isDanger: boolean;
  /** The name of a text to be given along; null: none. */
  readonly note: string | null;
  readonly answer: (note: string | null) => void;
};
const question: Store<Question | null> = createStore<Question | null>(null);

type Asked = Pick<Question, "title" | "text" | "yes"> & { readonly isDanger?: boolean; readonly note?: string };

/** What was written, or null for no. */
export function asked({ isDanger = false, note, ...rest }: Asked): Promise<string | null> {
  return new Promise((answer) => question.set({ ...rest, isDanger, note: note ?? null, answer }));
}

export function Questions(): JSX.Element | null {
  const open = useStore(question);
  return open === null ? null : <OneQuestion key={open.title + open.text} question={open} />;
}

function OneQuestion({ question: { title, text, yes, isDanger, note, answer } }: { question: Question }): JSX.Element {
  const [written, setWritten] = useState("");
  const end = (said: string | null): void => {
    question.set(null);
    answer(said);
  };
  return (
    <Dialog label={title} isNarrow onClose={() => end(null)} onSubmit={() => end(written)}>
      <h1>{title}</h1>
      <p class="muted">{steady(text)}</p>
      {note === null ? null : (
        <label class="field">
          <span>{note}</span>
          <input class="input" value={written} onInput={(event) => setWritten(event.currentTarget.value)} />
        </label>
      )}
      <footer>
        <button type="button" class="button" onClick={() => end(null)}>
          Keep as it is
        </button>
        <button type="submit" class={isDanger ? "button is-danger" : "button is-main"}>
          {yes}
        </button>
      </footer>
    </Dialog>
  );
}
