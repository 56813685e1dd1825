// On the page of a long text: how far what is shown of all heads has come, and what it leaves out.

import { NO_LENS } from "./call_view.js";
import { make } from "./elements.js";
import { say } from "./languages.js";

/** A line with progress, an error, or what does not hold for other layers; nothing on a page that has all numbers. */
export function summaryNotice({ recording, state }) {
  const { whole, summaries } = recording.layers;
  if (whole || !summaries) return [];
  if (summaries.error) return [make("span", { class: "error", role: "alert" }, summaries.error)];
  if (!summaries.done) {
    const share = String(Math.round(100 * summaries.share));
    const label = say("summaries");
    return [
      make(
        "span",
        { class: "summary-progress" },
        make("span", {}, label),
        make("progress", { max: "100", value: share, "aria-label": label }),
      ),
    ];
  }
  const through = Object.entries(NO_LENS).some(([name, none]) => state.now[name] !== none);
  const other = state.now.what !== "weight";
  return through || other ? [make("span", { class: "hint" }, say(other ? "summaries.weight" : "summaries.plain"))] : [];
}
