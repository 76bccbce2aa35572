/**
 * Small pieces that every view uses: panels, numbers, badges, meters, and what to show where there is nothing.
 */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useLocation } from "preact-iso";
import { RUNS_OUT, USED_UP } from "../../protocol/wire/index.ts";
import { Refused, Unreachable } from "../data/ask.ts";
import { to } from "../data/links.ts";
import { useNow } from "../data/use-call.ts";
import { span, steady } from "../data/words.ts";

/** The path of the view that was shown last. */
let shownPath = "";

export function View({
  title,
  actions,
  children,
  note,
}: {
  title: ComponentChildren;
  actions?: ComponentChildren;
  note?: ComponentChildren;
  children: ComponentChildren;
}): JSX.Element {
  const head = useRef<HTMLHeadingElement>(null);
  const { path } = useLocation();
  useEffect(() => {
    document.title = `${head.current?.textContent ?? ""} · Drover`;
  });
  useEffect(() => {
    // The link that led here has gone with its view: who uses the keyboard goes on from the heading.
    const isMoved = shownPath !== "" && shownPath !== path;
    shownPath = path;
    if (isMoved && document.activeElement === document.body) head.current?.focus({ preventScroll: true });
  }, [path]);
  return (
    <div class="view">
      <div class="view-head">
        <h1 ref={head} tabIndex={-1}>
          {title}
        </h1>
        {note}
        {actions === undefined ? null : <div class="actions">{actions}</div>}
      </div>
      {children}
    </div>
  );
}

export function Panel({
  title,
  actions,
  children,
  isFlush = false,
}: {
  title?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
  isFlush?: boolean;
}): JSX.Element {
  return (
    <section class="panel">
      {title === undefined ? null : (
        <header>
          <h2>{title}</h2>
          {actions === undefined ? null : <div class="actions">{actions}</div>}
        </header>
      )}
      <div class={isFlush ? "panel-body is-flush" : "panel-body"}>{children}</div>
    </section>
  );
}

export function Stat({
  label,
  value,
  of,
  hint,
}: {
  label: string;
  value: ComponentChildren;
  of?: ComponentChildren;
  hint?: ComponentChildren;
}): JSX.Element {
  return (
    <div class="stat">
      <dt>{label}</dt>
      <dd>
        {value}
        {of === undefined ? null : <small> {of}</small>}
      </dd>
      <dd class="hint">{hint ?? "\u00a0"}</dd>
    </div>
  );
}

/** When a budget that is nearly used up has more room. */
export const MoreIn = ({ at }: { at: string }): JSX.Element => (
  <span class="small faint">more in {span(Math.max(0, Date.parse(at) - useNow()))}</span>
);

export const State = ({ state }: { state: string }): JSX.Element => <span class={`badge is-${state}`}>{state}</span>;

export function TaskName({ id }: { id: string }): JSX.Element {
  return (
    <a href={to.task(id)} class="mono" title={id}>
      <bdi>{id}</bdi>
    </a>
  );
}

/** It leads to the tasks of the project. */
export const ProjectName = ({ id }: { id: string }): JSX.Element => (
  <a href={to.tasks({ project: id })}>
    <Name>{id}</Name>
  </a>
);

export const Name = ({ children }: { children: string }): JSX.Element => <bdi>{children}</bdi>;

export type Tone = "good" | "warn" | "bad" | "info" | "quiet";

/** Of what fills up: calm, then a warning, and bad when little is left. */
export const fillTone = <Calm extends Tone>(part: number, calm: Calm): Calm | "warn" | "bad" =>
  part >= USED_UP ? "bad" : part >= RUNS_OUT ? "warn" : calm;

/** How full something is; `mark` is where it should be. */
export function Meter({
  part,
  text,
  tone = "info",
  mark,
  label,
}: {
  part: number;
  text?: ComponentChildren;
  tone?: Tone;
  mark?: number;
  label: string;
}): JSX.Element {
  const at = (value: number): string => `${100 * Math.min(1, Math.max(0, value))}%`;
  return (
    <div class={`meter tone-${tone}`}>
      <div
        class="meter-bar"
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(100 * Math.min(1, Math.max(0, part)))}
      >
        <i style={{ width: at(part) }} />
        {mark === undefined ? null : <b style={{ left: `calc(${at(mark)} - 1px)` }} />}
      </div>
      {text === undefined ? null : <span class="meter-text">{text}</span>}
    </div>
  );
}

export function Empty({ children, hint }: { children: ComponentChildren; hint?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <p>{children}</p>
      {hint === undefined ? null : <p class="faint small">{hint}</p>}
    </div>
  );
}

export const NoWorkers = (): JSX.Element => (
  <Empty
    hint={
      <>
        Start one: <code>drover worker --commands</code>
      </>
    }
  >
    No worker is here, so nothing can run.
  </Empty>
);

/** What went wrong, in the server's words; a server that is away is told of above the view, once. */
export function Failure({ error }: { error: Error | null }): JSX.Element | null {
  if (error === null || error instanceof Unreachable) return null;
  if (error instanceof Refused && error.status === 401) return null;
  return (
    <p class="failure" role="alert">
      {steady(error.message)}
    </p>
  );
}

/** In the place of an answer that is not there: that it is coming, or why not. */
export function Missing({ error }: { error: Error | null }): JSX.Element | null {
  if (error === null) return <p class="loading">Loading…</p>;
  if (error instanceof Unreachable) return <p class="loading">Not known until the server answers.</p>;
  if (error instanceof Refused && error.status === 403)
    return <Empty hint={steady(error.message)}>Your token does not show this.</Empty>;
  return <Failure error={error} />;
}

/** The answer of a call once it is there; before, that it is coming, or why not. */
export function Loaded<Value>({
  from: { data, error },
  children,
}: {
  from: { readonly data: Value | null; readonly error: Error | null };
  children: (value: Value) => ComponentChildren;
}): JSX.Element {
  if (data === null) return <Missing error={error} />;
  return (
    <>
      <Failure error={error} />
      {children(data)}
    </>
  );
}

/** A table that may be wider than its place: it scrolls there, by the keyboard too. */
export function TableBox({ label, children }: { label: string; children: ComponentChildren }): JSX.Element {
  return (
    <div class="table-box" role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}

/** A few choices of which one holds. */
export function Segments<Choice extends string>({
  label,
  choices,
  chosen,
  onChoose,
}: {
  label: string;
  choices: readonly (readonly [Choice, string])[];
  chosen: Choice;
  onChoose: (choice: Choice) => void;
}): JSX.Element {
  return (
    <div class="segments" role="group" aria-label={label}>
      {choices.map(([choice, text]) => (
        <button key={choice} type="button" aria-pressed={choice === chosen} onClick={() => onChoose(choice)}>
          {text}
        </button>
      ))}
    </div>
  );
}
