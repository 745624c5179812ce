"use strict";

/* A button that copies: <button data-copy="#id of what is copied" hidden>Copy</button> */
for (const button of document.querySelectorAll("button[data-copy]")) {
  const source = document.querySelector(button.dataset.copy);
  if (!source) continue;
  const label = button.textContent;
  const said = document.createElement("span");
  said.className = "unseen";
  said.setAttribute("role", "status");
  button.after(said);
  button.hidden = false;
  button.addEventListener("click", async () => {
    const isDone = await copied(source);
    button.textContent = isDone ? "Copied" : "Press Ctrl+C";
    said.textContent = isDone ? "Copied" : "It is selected: copy it with Ctrl+C";
    setTimeout(() => { button.textContent = label; said.textContent = ""; }, 4000);
  });
}

/* By plain http from another machine there is no clipboard for scripts: then it is selected, and copied from there. */
async function copied(source) {
  const text = "value" in source ? source.value : source.textContent;
  if (navigator.clipboard && window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch { /* not allowed: as without */ }
  }
  if ("select" in source) source.select();
  else window.getSelection().selectAllChildren(source);
  return document.execCommand("copy");
}

/* What was done is said once: then the address is that of the page itself. */
const said = document.querySelector("[data-said]");
if (said) history.replaceState(null, "", said.dataset.said || location.pathname);

/* Times are those of the browser's zone, and UTC in the title; of "5 minutes ago" the title has both. */
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
  "December"];
tellTimes();

function tellTimes() {
  for (const each of document.querySelectorAll('time[datetime*="T"]')) {
    const at = new Date(each.dateTime);
    if (!(at.getFullYear() >= 1900)) continue; /* zones were no whole minutes then */
    const utc = `${timeInWords(at, "UTC")} UTC`;
    const { shown } = each.dataset;
    each.title = shown ? utc : `${timeInWords(at)} (${utc})`;
    if (shown) each.textContent = shown === "day" ? dayInWords(at) : timeInWords(at);
  }
}

function dayInWords(at, zone = "") {
  return `${at[`get${zone}Date`]()} ${MONTHS[at[`get${zone}Month`]()]} ${at[`get${zone}FullYear`]()}`;
}

function timeInWords(at, zone = "") {
  const clock = [at[`get${zone}Hours`](), at[`get${zone}Minutes`]()].map((each) => String(each).padStart(2, "0")).join(":");
  return `${dayInWords(at, zone)}, ${clock}`;
}

/* A list that is dropped anywhere on the page is brought in: <form data-drop> with a file and a button named ask. */
for (const form of document.querySelectorAll("form[data-drop]")) {
  const input = form.querySelector("input[type=file]");
  const isFile = (event) => [...event.dataTransfer.types].includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!isFile(event)) return;
    event.preventDefault();
    form.classList.add("over");
  });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) form.classList.remove("over"); });
  document.addEventListener("drop", (event) => {
    if (!isFile(event)) return;
    event.preventDefault();
    form.classList.remove("over");
    input.files = event.dataTransfer.files;
    if (input.files.length === 1) form.requestSubmit(form.querySelector("button[name=ask]"));
  });
}
