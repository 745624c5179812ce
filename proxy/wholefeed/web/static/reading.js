"use strict";

/* The page of a feed's entries: what a person chose stays in this browser, for all feeds or for one. This script stands in
   the head and waits for nothing, so that no page is drawn that another replaces at once. */
const reading = {
  feed: document.currentScript.dataset.feed,
  get(name) {
    try { return localStorage.getItem(`wholefeed ${name}`); } catch { return null; } /* a browser may forbid it */
  },
  set(name, value) {
    try {
      if (value) localStorage.setItem(`wholefeed ${name}`, value);
      else localStorage.removeItem(`wholefeed ${name}`);
    } catch { /* the same */ }
  },
};
const MEDIA = `media ${reading.feed}`;
if (reading.get(MEDIA) && !/[?&]media=/.test(location.search)) {
  const target = new URL(location.href);
  target.search += "&media=1";
  location.replace(target);
}
document.addEventListener("DOMContentLoaded", () => {
  followChoices();
  followKeys();
  unfoldNamed();
  window.addEventListener("hashchange", unfoldNamed);
});

function followChoices() {
  for (const link of document.querySelectorAll("[data-media]")) {
    link.addEventListener("click", () => reading.set(MEDIA, link.dataset.media === "on" ? "on" : ""));
  }
  const link = document.querySelector("[data-reading]");
  if (!link) return;
  /* An address that asks for whole entries gives them to anybody; the choice is about all others. */
  let isWhole = link.dataset.reading === "titles" || reading.get("entries") === "whole";
  const show = () => {
    for (const each of document.querySelectorAll(".fold")) each.open = isWhole;
    link.textContent = isWhole ? "Titles only" : "Whole entries";
  };
  if (isWhole) show();
  link.addEventListener("click", (event) => {
    event.preventDefault();
    isWhole = !isWhole;
    reading.set("entries", isWhole ? "whole" : "");
    history.replaceState(null, "", location.href.replace(/whole=1&/, ""));
    show();
  });
}

/* The entry that the address names. */
function unfoldNamed() {
  const entry = location.hash.length > 1 && document.getElementById(decodeName(location.hash.slice(1)));
  if (entry && entry.matches(".entry")) goTo(entry, true);
}

function decodeName(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function goTo(entry, isUnfolded) {
  const fold = entry.querySelector(".fold");
  if (fold && isUnfolded) fold.open = true;
  entry.scrollIntoView({ block: "start" });
  (entry.querySelector("summary") || entry.querySelector("a") || entry).focus({ preventScroll: true });
}

function followKeys() {
  const help = document.querySelector("#keys");
  const isOn = document.querySelector("#keys-on");
  const button = document.querySelector("[data-keys]");
  if (!help) return; /* no entry is here */
  isOn.checked = reading.get("keys") !== "off";
  isOn.addEventListener("change", () => reading.set("keys", isOn.checked ? "" : "off"));
  button.hidden = false;
  button.addEventListener("click", () => help.showModal());
  const acts = { j: () => step(1), k: () => step(-1), o: unfold, "/": search, "?": () => help.showModal() };
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, select, textarea, [contenteditable], dialog");
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || isTyping || !isOn.checked) return;
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

/* An entry, or a title that was found. */
const STEPS = ".entry, .feed-lines > li";

function presentEntry() {
  return document.activeElement && document.activeElement.closest(STEPS);
}

/* From the entry with the focus, else from the first one that is not above the window. */
function step(by) {
  const entries = [...document.querySelectorAll(STEPS)];
  const at = entries.indexOf(presentEntry());
  const above = entries.filter((each) => each.getBoundingClientRect().bottom <= 0).length;
  const next = at >= 0 ? at + by : by > 0 ? above : above - 1;
  if (entries[next]) goTo(entries[next], false);
  else if (next >= entries.length) focusOn('.pages [rel="next"]');
  else focusOn('.pages [rel="prev"]');
}

function focusOn(selector) {
  const found = document.querySelectorAll(selector);
  if (found.length) found[found.length - 1].focus();
}

function unfold() {
  const entry = presentEntry();
  const fold = entry && entry.querySelector(".fold");
  if (!fold) return;
  fold.open = !fold.open;
  fold.querySelector("summary").focus({ preventScroll: true });
}

function search() {
  const field = document.querySelector("#find");
  if (!field) return;
  field.focus();
  field.select();
}
