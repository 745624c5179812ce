"use strict";

/* While a feed's walk, or a list, goes on the page is told of its progress, and is loaded again when that has ended. */
const followed = document.querySelector("[data-events]");
const waiting = document.querySelector("[data-reload]");
if (followed) follow(followed.dataset.events);
if (waiting) reloadAfter(Number(waiting.dataset.reload));

function follow(url) {
  let stream = null;
  const stop = () => { if (stream) stream.close(); stream = null; };
  const start = () => {
    if (stream || document.hidden) return;
    stream = new EventSource(url);
    stream.addEventListener("status", (event) => show(JSON.parse(event.data)));
    stream.addEventListener("end", (event) => {
      stop();
      /* What could not be finished is taken up later: there is no use in asking at once. */
      reloadAfter(JSON.parse(event.data).state === "loading" ? 5 : 0);
    });
    stream.addEventListener("error", () => {
      if (stream && stream.readyState === EventSource.CLOSED) { stop(); reloadAfter(10); }
    });
  };
  /* A browser has six connections to a host: pages that nobody looks at hold none of them. */
  document.addEventListener("visibilitychange", () => { if (document.hidden) stop(); else start(); });
  window.addEventListener("pagehide", stop);
  start();
}

function show(status) {
  if ("waiting" in status) showIntake(status);
  else showWalk(status);
  grow();
}

/* How far a list is that somebody brought in. */
function showIntake(intake) {
  tell("sums", intake.progress);
  tell("totals", intake.summary);
  const bar = document.querySelector("#progress progress");
  bar.max = intake.feeds;
  bar.value = intake.asked;
}

function showWalk(status) {
  const { documents, entries, left, seconds, fetched } = status.progress;
  tell("sums", `${counted(entries, "entry", "entries")} out of ${counted(documents, "document", "documents")}`);
  const isKnown = left !== null && left > 0 && seconds && fetched >= 3;
  tell("left", isKnown ? `· about ${duration(Math.max(1, left * seconds / fetched))} left` : "");
  const bar = document.querySelector("#progress progress");
  if (bar && left !== null) {
    bar.max = documents + left;
    bar.value = documents;
    tell("unknown", "");
  } else if (bar) {
    bar.removeAttribute("value");
  }
}

/* The chart and the entries of the page grow, too: what is seldom enough for the proxy to draw them anew. */
const GROWS_SECONDS = 3;
let grownAt = 0;

async function grow() {
  if (Date.now() - grownAt < GROWS_SECONDS * 1000) return;
  grownAt = Date.now();
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const old of document.querySelectorAll("[data-grows]")) {
    const grown = page.querySelector(`[data-grows="${old.dataset.grows}"]`);
    if (!grown || old.querySelector(":focus-visible")) continue;
    const opened = [...old.querySelectorAll("details")].map((each) => each.open);
    grown.querySelectorAll("details").forEach((each, place) => { each.open = opened[place] ?? each.open; });
    old.replaceWith(grown);
  }
}

function tell(name, text) {
  const place = document.querySelector(`[data-progress="${name}"]`);
  if (place && place.textContent !== text) place.textContent = text;
}

function counted(number, one, many) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

function duration(seconds) {
  const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const [name, size] = units.find((unit) => seconds >= unit[1]) ?? units[3];
  const number = Math.floor(seconds / size);
  return counted(number, name, `${name}s`);
}

/* Not while something is being typed or read: then the next look at the page does it. */
function reloadAfter(seconds) {
  setTimeout(() => {
    if (document.hidden) document.addEventListener("visibilitychange", () => location.reload(), { once: true });
    else location.reload();
  }, seconds * 1000);
}
