"use strict";

/* The table of feeds: what is typed or chosen applies at once, and a refresh that goes on is followed. Without
   scripts the forms do the same by their buttons. */
const WAIT_MS = 250;
const FOLLOW_MS = 2000;
const filter = document.querySelector("form[data-filter]");
let wanted = 0; /* the number of the newest request: an older answer that comes later is dropped */
let typing;

if (filter) {
  filter.querySelector("button").hidden = true;
  filter.addEventListener("submit", (event) => { event.preventDefault(); apply(); });
  filter.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(apply, WAIT_MS); });
}
document.addEventListener("change", (event) => {
  const all = event.target.closest("[data-check-all]");
  if (all) for (const box of boxes()) box.checked = event.target.checked;
  count();
});
prepare();
follow();

function boxes() {
  return [...document.querySelectorAll('#feeds input[name="feed"]')];
}

function prepare() {
  tellTimes();
  const all = document.querySelector("[data-check-all]");
  if (all) { all.hidden = false; all.nextElementSibling.hidden = true; }
  count();
}

function count() {
  const place = document.querySelector("[data-checked]");
  if (!place) return;
  const all = document.querySelector('#feeds input[name="all"]');
  const checked = all && all.checked ? "All" : boxes().filter((each) => each.checked).length || "Checked";
  const text = `${checked} ${checked === 1 ? "feed" : "feeds"}`;
  if (place.textContent !== text) place.textContent = text;
}

function apply() {
  clearTimeout(typing);
  const query = new URLSearchParams([...new FormData(filter)].filter(([, value]) => value.trim()));
  if (query.get("sort") === filter.elements.sort.options[0].value) query.delete("sort");
  const text = query.toString();
  const url = `${location.pathname}${text ? `?${text}` : ""}`;
  history.replaceState(null, "", url);
  renew(url);
}

/* Put the parts of a page in the place of these; boxes that are checked and what has the focus stay. */
async function renew(url) {
  const number = ++wanted;
  const answer = await fetch(url, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!answer || number !== wanted) return;
  if (answer.status === 401) { location.reload(); return; }
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.querySelector("#feeds");
  if (!fresh || number !== wanted) return;
  const checked = new Set(boxes().filter((each) => each.checked).map((each) => each.value));
  for (const box of fresh.querySelectorAll('input[name="feed"]')) box.checked = checked.has(box.value);
  const [all, again] = [document.querySelector("#feeds"), fresh].map((each) => each.querySelector('input[name="all"]'));
  if (all && again) again.checked = all.checked && all.parentElement.textContent === again.parentElement.textContent;
  for (const name of ["#needs", "#feeds"]) replace(document.querySelector(name), page.querySelector(name));
  prepare();
  const said = fresh.querySelector("[data-said]");
  if (said) history.replaceState(null, "", said.dataset.said || location.pathname);
}

function replace(old, fresh) {
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  old.replaceWith(fresh);
  const again = focused && [...fresh.querySelectorAll(focused.tagName)].find(
    (each) => each.name === focused.name && each.value === focused.value && each.href === focused.href);
  if (again) again.focus({ preventScroll: true });
}

async function follow() {
  if (!document.querySelector("#feeds[data-asking]")) return;
  await new Promise((after) => setTimeout(after, FOLLOW_MS));
  if (!document.hidden) await renew(location.href);
  follow();
}
