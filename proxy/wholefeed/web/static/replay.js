"use strict";

/* The form of a replay: its address, and how long it takes, follow what is chosen. They are what the server makes
   of the same form (wholefeed.core.replay, wholefeed.core.words); the browser alone knows the person's clock. */
const DAYS = { mon: "Monday", tue: "Tuesday", wed: "Wednesday", thu: "Thursday", fri: "Friday", sat: "Saturday", sun: "Sunday" };
const NAMES = Object.keys(DAYS);
const DAY = 86400;
const chosen = document.querySelector("form.replay");
if (chosen) followChoice(chosen);

function followChoice(form) {
  const { start, offset } = form.elements;
  const address = document.querySelector("#replayed");
  if (!address) return; /* what was chosen is wrong, and the server says why: the form is sent once more */
  const days = form.querySelector("fieldset");
  const own = { start: "begins" in form.dataset, offset: "begins" in form.dataset };
  const update = () => {
    const rate = form.elements.replay.value;
    days.disabled = rate.endsWith("/week");
    const on = days.disabled ? [] : NAMES.filter((name) => form.elements[name].checked);
    if (!own.start) start.value = localTime(lastBeginning(on));
    if (!own.offset && start.value) offset.value = offsetOf(new Date(start.value));
    if (!form.checkValidity()) return;
    const from = `${start.value}${start.value.length === 16 ? ":00" : ""}${offset.value}`;
    const query = { replay: rate, from, on: on.join(","), original: form.elements.original.checked ? "off" : "" };
    const added = Object.entries(query).filter((each) => each[1]).map(([name, value]) => `&${name}=${encodeURIComponent(value)}`);
    address.value = form.dataset.address + added.join("");
    say(inWords(Number(form.dataset.entries), rate, on, from));
  };
  form.querySelector("button").hidden = true;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    if (event.target === start) own.start = true;
    if (event.target === offset) own.start = own.offset = true;
    update();
  });
  update();
}

/* The last 6:00, of one of the days where some are chosen: so the first entries are there at once. */
function lastBeginning(on) {
  const now = new Date();
  const at = new Date(now);
  at.setHours(6, 0, 0, 0);
  if (at > now) at.setDate(at.getDate() - 1);
  while (on.length && !on.includes(NAMES[(at.getDay() + 6) % 7])) at.setDate(at.getDate() - 1);
  return at;
}

function two(number) {
  return String(number).padStart(2, "0");
}

function localTime(at) {
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}`;
}

function offsetOf(at) {
  const minutes = -at.getTimezoneOffset();
  return `${minutes < 0 ? "-" : "+"}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
}

function inWords(entries, rate, on, from) {
  const count = Number(rate.split("/")[0]);
  const names = on.map((name) => DAYS[name]);
  const listed = names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
  const pace = `${count === 1 ? "one" : count} ${on.length ? `each ${listed}` : `a ${rate.split("/")[1]}`}`;
  const said = `${entries.toLocaleString("en")} ${entries === 1 ? "entry" : "entries"}, ${pace}`;
  if (!entries) return said;
  const local = Date.parse(`${from.slice(0, 19)}Z`) / 1000;
  const seconds = lastSlot(entries - 1, count, rate.endsWith("/week") ? 7 * DAY : DAY, on, local);
  const format = { month: "long", year: "numeric", timeZone: "UTC", ...(seconds < 60 * DAY && { day: "numeric" }) };
  return `${said}: until ${new Date((local + seconds) * 1000).toLocaleDateString("en-GB", format)}`;
}

/* Seconds from the beginning to the release of an entry by its place, from 0. */
function lastSlot(place, count, period, on, local) {
  if (on.length) {
    const first = (Math.floor(local / DAY) + 3) % 7;
    const days = on.map((name) => (NAMES.indexOf(name) - first + 7) % 7).sort();
    const week = Math.floor(place / (days.length * count));
    const left = place % (days.length * count);
    return week * 7 * DAY + days[Math.floor(left / count)] * DAY + left % count;
  }
  const beginsWithTwo = count * DAY < 2 * period;
  const step = beginsWithTwo ? Math.max(place - 1, 0) : place;
  return Math.floor(step * period / count) + (beginsWithTwo && place === 1 ? 1 : 0);
}

function say(text) {
  const place = document.querySelector("#replay-words");
  if (place.textContent !== text) place.textContent = text;
}
