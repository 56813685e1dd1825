// Shown until the views of a recording are written: requests them, shows progress, then opens them.

import { firstLanguage } from "/assets/map/browser_storage.js";
import { followJob, getJson, postJson } from "/assets/map/client.js";
import { datum, make } from "/assets/page/elements.js";
import { say, speak } from "/assets/page/languages.js";
import { wearTheme } from "/assets/page/theme.js";

const root = document.getElementById("regard");
const id = decodeURIComponent(location.pathname.split("/")[2]);
const call = new URLSearchParams(location.search).get("call");
speak(firstLanguage());
wearTheme("auto");

function show(job) {
  const share = Math.round(100 * job.share);
  root.replaceChildren(
    make(
      "div",
      { class: "waiting" },
      make("p", {}, say(`stage.${job.stage}`), " ", datum(`${share}%`)),
      make("progress", { max: "100", value: String(share) }),
    ),
  );
}

/** A large recording has no page of all its calls, but one for each; the first of them is opened. */
async function isTooLarge() {
  if (call !== null) return false;
  const { whole } = await getJson(`/api/recordings/${encodeURIComponent(id)}`);
  return !whole;
}

async function open() {
  if (await isTooLarge()) {
    location.replace(`${location.pathname}?call=0${location.hash}`);
    return;
  }
  const { job } = await postJson(
    `/api/recordings/${encodeURIComponent(id)}/pages`,
    call === null ? {} : { call: Number(call) },
  );
  if (job) await followJob(job, show);
  location.reload();
}

try {
  await open();
} catch (error) {
  root.replaceChildren(make("p", { class: "notice", role: "alert" }, error.message));
}
