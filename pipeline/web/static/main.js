// The frame of the pages: which view is shown, going from one to another, and what works in the background.

import { ask, complain } from "/assets/dom.js";
import * as strategy from "/assets/strategy.js";
import * as hands from "/assets/hands.js";
import * as play from "/assets/play.js";
import * as results from "/assets/results.js";
import * as leaks from "/assets/leaks.js";

const VIEWS = { strategy, hands, leaks, play, results };
let about = null;
let leave = null;
let turn = 0;

/** Go to an address of these pages. */
export function go(address, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  return show();
}

async function show() {
  const mine = ++turn;
  const name = location.pathname.slice(1) || "strategy";
  const view = VIEWS[name] ?? strategy;
  document.title = `${name[0].toUpperCase()}${name.slice(1)} – Explorer`;
  for (const link of document.querySelectorAll("nav a[data-view]")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    about ??= await ask("about");
    if (leave && leave.view !== view) {
      leave.stop?.();
      leave = null;
    }
    const place = document.getElementById("view");
    const query = Object.fromEntries(new URLSearchParams(location.search));
    const stop = await view.show(place, { about, query, go, current: () => mine === turn });
    if (stop) leave = { view, stop };
  } catch (error) {
    if (mine === turn) complain(error.message);
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='/']");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  const same = link.dataset.view && link.getAttribute("aria-current");
  if (!same) go(link.getAttribute("href"));
});
window.addEventListener("popstate", show);

async function watch() {
  const place = document.getElementById("work");
  try {
    const { jobs } = await (await fetch("/api/jobs")).json();
    const said = jobs.map((job) => job.state === "failed" ? `${job.title}: ${job.error}`
      : `${job.title} ${job.total ? `${Math.floor((100 * job.done) / job.total)} %` : "…"}`);
    place.textContent = said.join("; ");
    setTimeout(watch, jobs.length ? 1000 : 5000);
  } catch {
    setTimeout(watch, 10000);
  }
}

show();
watch();
