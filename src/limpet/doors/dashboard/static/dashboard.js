// Keys, theme and live updates. Every page works without this file.
"use strict";

const body = document.body;
const find = (selector) => document.querySelector(selector);
const typing = () => {
  const at = document.activeElement;
  return at && (at.matches("textarea, select") || (at.matches("input") && at.type !== "checkbox"));
};

// --- theme

function turnTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("limpet-theme", root.dataset.theme);
  } catch {
    // It then lasts as long as the page.
  }
}

for (const [id, does] of [["theme", turnTheme], ["keys", showHelp]]) {
  const button = document.getElementById(id);
  if (button) {
    button.hidden = false;
    button.addEventListener("click", does);
  }
}

// --- keys

function showHelp() {
  const help = find("#help");
  if (help && !help.open) help.showModal();
}

function move(step) {
  const items = [...document.querySelectorAll("[data-item]")].filter((one) => one.offsetParent !== null);
  if (!items.length) return;
  const now = items.findIndex((one) => one.classList.contains("marked-item"));
  const next = now < 0 ? (step > 0 ? 0 : items.length - 1) : Math.min(items.length - 1, Math.max(0, now + step));
  if (now >= 0) items[now].classList.remove("marked-item");
  items[next].classList.add("marked-item");
  items[next].focus({ preventScroll: true });
  items[next].scrollIntoView({ block: "nearest" });
}

let pending = 0;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && typing()) return document.activeElement.blur();
  if (typing() || (find("#help") && find("#help").open)) return;
  const key = event.key;
  if (pending && Date.now() - pending < 1500) {
    pending = 0;
    const link = find(`nav a[data-key="${CSS.escape(key)}"]`);
    if (link) {
      event.preventDefault();
      link.click();
    }
    return;
  }
  pending = 0;
  if (key === "g") pending = Date.now();
  else if (key === "j" || key === "k") move(key === "j" ? 1 : -1);
  else if (key === "t") turnTheme();
  else if (key === "?") showHelp();
  else if (key === "/" && find("#search")) {
    event.preventDefault();
    find("#search").focus();
  } else if (key === "Enter") {
    const item = find(".marked-item");
    const link = item && document.activeElement === item && !item.matches("a") && (item.querySelector("[data-open]") || item.querySelector("a"));
    if (link) link.click();
  }
});

// On a narrow screen the pages are one line, and the present one may be beyond its end.
const lit = find("nav a[aria-current]");
if (lit && lit.offsetParent) lit.closest("nav").scrollLeft = lit.offsetLeft - 40;

// A plot that is wider than the screen shows its newest days.
for (const plot of document.querySelectorAll(".plot")) plot.parentElement.scrollLeft = plot.parentElement.scrollWidth;

// --- live

let changed = false;

// What somebody is typing or has opened must not be taken away.
function busy() {
  const field = [...document.querySelectorAll("main textarea, main input, main select")].some(
    (one) => one === document.activeElement || (one.type !== "hidden" && one.value !== one.defaultValue && !one.matches("select"))
  );
  const help = find("#help");
  return field || (help && help.open) || String(getSelection()) !== "";
}

function refresh() {
  if (busy()) {
    changed = true;
    find("#pulse").classList.add("waiting");
    return;
  }
  changed = false;
  // A request that answers with a document: nothing here ever turns a text into markup.
  const asked = new XMLHttpRequest();
  asked.open("GET", location.href);
  asked.responseType = "document";
  asked.setRequestHeader("Accept", "text/html");
  asked.onload = () => {
    const fresh = asked.response && asked.response.querySelector('[data-region="page"]');
    const old = find('[data-region="page"]');
    if (asked.status === 401) return location.reload();
    if (!fresh || !old || busy()) return;
    keepOpen(old, fresh);
    old.replaceWith(document.importNode(fresh, true));
    const pulse = find("#pulse");
    pulse.classList.remove("waiting", "beat");
    void pulse.offsetWidth;
    pulse.classList.add("beat");
  };
  asked.send();
}

function keepOpen(old, fresh) {
  const name = (one) => `${one.closest("[data-item]") ? one.closest("[data-item]").textContent.length : ""}:${one.querySelector("summary").textContent}`;
  const open = new Set([...old.querySelectorAll("details[open]")].map(name));
  for (const one of fresh.querySelectorAll("details")) if (open.has(name(one))) one.open = true;
  const items = [...old.querySelectorAll("[data-item]")];
  const at = items.findIndex((one) => one.classList.contains("marked-item"));
  const same = at >= 0 && [...fresh.querySelectorAll("[data-item]")].find((one) => one.textContent === items[at].textContent);
  if (same) same.classList.add("marked-item");
}

// A browser opens few connections to one server, so that only the page that is looked at listens.
let stream = null;
function listen() {
  const wanted = body.dataset.live && document.visibilityState === "visible";
  const pulse = find("#pulse");
  if (!wanted) {
    if (stream) stream.close();
    stream = null;
    return;
  }
  if (stream) return;
  let seen = body.dataset.seen;
  stream = new EventSource(body.dataset.live);
  pulse.hidden = false;
  stream.onopen = () => pulse.classList.add("on");
  stream.onerror = () => pulse.classList.remove("on");
  const told = (event) => {
    if (seen !== undefined && seen !== event.data) refresh();
    seen = body.dataset.seen = event.data;
  };
  stream.addEventListener("now", told);
  stream.addEventListener("change", told);
  stream.addEventListener("over", () => location.reload());
}

document.addEventListener("visibilitychange", listen);
document.addEventListener("focusout", () => setTimeout(() => changed && refresh(), 300));
addEventListener("pagehide", () => {
  if (stream) stream.close();
  stream = null;
});
addEventListener("pageshow", listen);
