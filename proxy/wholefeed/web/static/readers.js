"use strict";

/* Links that add the feed to readers that people host themselves: only this browser knows where those are. */
const where = document.querySelector(".adding-where");
let asked = null;
for (const each of document.querySelectorAll("li[data-reader]")) link(each);
if (where) {
  listen(where);
  document.querySelector("#adding").hidden = false;
}

function link(item) {
  const { reader, adds } = item.dataset;
  const address = kept(reader);
  item.replaceChildren();
  if (address) {
    const anchor = document.createElement("a");
    anchor.href = address + adds;
    anchor.rel = "noreferrer";
    anchor.textContent = reader;
    item.append(anchor, " ", button(`Change the address of your ${reader}`, "change", item));
  } else {
    item.append(button("", `${reader}…`, item));
  }
  item.hidden = false;
}

function button(label, text, item) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "plain";
  made.textContent = text;
  if (label) made.setAttribute("aria-label", label);
  made.addEventListener("click", () => ask(item));
  return made;
}

function ask(item) {
  asked = item;
  where.querySelector("[data-name]").textContent = item.dataset.reader;
  const input = where.querySelector("input");
  input.value = kept(item.dataset.reader);
  complain(false);
  where.hidden = false;
  input.focus();
}

function listen(form) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const address = addressOf(form.querySelector("input").value, asked.dataset.paths.split(" "));
    complain(!address);
    if (!address) return;
    keep(asked.dataset.reader, address);
    link(asked);
    form.hidden = true;
    location.assign(address + asked.dataset.adds);
  });
  form.querySelector("[data-cancel]").addEventListener("click", () => {
    form.hidden = true;
    asked.querySelector("button").focus();
  });
}

function complain(isWrong) {
  const input = where.querySelector("input");
  where.querySelector("#adding-wrong").hidden = !isWrong;
  if (isWrong) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

/* What people type or copy: without a scheme, or the address of one of the reader's pages. Nothing else than the web. */
function addressOf(typed, paths) {
  const text = typed.trim();
  const isNamed = /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  const host = text.split(/[:/]/)[0];
  const isLocal = !host.includes(".") || /^[0-9.]+$/.test(host);
  let url;
  try { url = new URL(isNamed ? text : `${isLocal ? "http" : "https"}://${text}`); } catch { return ""; }
  if (!/^https?:$/.test(url.protocol) || !url.hostname) return "";
  let path = url.pathname.replace(/\/+$/, "");
  const page = paths.find((each) => each && path.endsWith(each));
  if (page) path = path.slice(0, -page.length);
  return url.origin + path;
}

function kept(reader) {
  try { return addressOf(localStorage.getItem(`wholefeed-reader ${reader}`) || "", [""]) ; } catch { return ""; }
}

function keep(reader, address) {
  try { localStorage.setItem(`wholefeed-reader ${reader}`, address); } catch { /* not allowed: it is asked for again */ }
}

/* No browser tells whether a program takes `feed:`: if one does, this window loses its place, at once or once it was allowed
   to. On Android and ChromeOS no program can. */
const NOTHING = "wholefeed-no-program";
const scheme = document.querySelector("[data-feed-scheme]");
if (scheme && !/Android|CrOS/.test(navigator.userAgent) && !isMarked(NOTHING)) {
  scheme.hidden = false;
  scheme.querySelector("a").addEventListener("click", () => {
    const told = document.querySelector("[data-nothing]");
    const waited = setTimeout(() => { told.hidden = false; mark(NOTHING, true); }, 3000);
    const taken = () => { clearTimeout(waited); told.hidden = true; mark(NOTHING, false); };
    window.addEventListener("blur", taken, { once: true });
    document.addEventListener("visibilitychange", taken, { once: true });
  });
}

function isMarked(name) {
  try { return sessionStorage.getItem(name) !== null; } catch { return false; }
}

function mark(name, isSet) {
  try { if (isSet) sessionStorage.setItem(name, "1"); else sessionStorage.removeItem(name); } catch { /* not allowed */ }
}
