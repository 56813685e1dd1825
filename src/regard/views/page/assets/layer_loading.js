// On the page of a long text: the layer that is on its way, how far it is, or why it did not come.

import { make, press } from "./elements.js";
import { say } from "./languages.js";

/** Fills the line below the controls; it is hidden while nothing is on its way. */
export function showLoading(line, { calls, layers }) {
  const { loading } = layers;
  line.hidden = !loading;
  if (!loading) {
    line.replaceChildren();
    return;
  }
  const { layer } = calls[loading.call];
  if (loading.error) {
    line.replaceChildren(
      make("span", { class: "error", role: "alert" }, loading.error),
      press("×", () => layers.leave(), { "aria-label": say("close") }),
    );
    return;
  }
  const label = say("layer.loading", { layer });
  // Filled once, so that a screen reader says it once.
  if (line.dataset.call !== String(loading.call) || !line.querySelector("progress")) {
    line.dataset.call = String(loading.call);
    line.replaceChildren(
      make("span", { role: "status" }, label),
      make("progress", { max: "100", "aria-label": label }),
      press(say("layer.stay"), () => layers.leave()),
    );
  }
  // Without a value it says that something happens.
  if (loading.share > 0) line.querySelector("progress").value = 100 * loading.share;
}
