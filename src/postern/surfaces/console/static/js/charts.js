// Charts are drawn from the table beside them: whoever cannot see the one has the other.

import { ZONE } from "./times.js";

const OUTCOMES = ["accepted", "filtered", "duplicate", "handshake", "rejected"];
const LATENCIES = ["p50", "p95", "p99"];

export function start(selector) {
  const draw = () => document.querySelectorAll(selector).forEach((box) => box.dataset.drawn || plot(box));
  draw();
  document.addEventListener("htmx:after:swap", draw);
  const again = () => document.querySelectorAll(selector).forEach(plot);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  let waiting;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(again, 150);
  });
}

function plot(box) {
  box.dataset.drawn = "yes";
  box.replaceChildren();
  const rows = [...document.getElementById(box.dataset.table).tBodies[0].rows];
  const at = rows.map((row) => new Date(row.querySelector("time").dateTime) / 1000);
  const cells = rows.map((row) => [...row.cells].slice(1).map((cell) => (cell.textContent === "" ? null : Number(cell.textContent.replace(">30000", "30001")))));
  const isVolume = box.dataset.chart === "outcomes";
  const names = isVolume ? OUTCOMES : LATENCIES;
  const values = names.map((_, index) => cells.map((row) => row[index + (isVolume ? 0 : 4)]));
  const resolved = (name) => {
    const probe = document.createElement("i");
    probe.className = `probe ${name}`;
    box.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const ink = resolved("ink-soft");
  const line = resolved("line");

  // A line needs two points; the first call has one.
  const few = cells.filter((row) => row[4] !== null).length <= 12;

  const data = isVolume ? stacked(values) : values;
  const order = isVolume ? [...names].reverse() : names;
  const series = order.map((name, index) =>
    isVolume
      ? { label: name, fill: resolved(name), width: 0, paths: bars(), points: { show: false }, real: values[names.indexOf(name)] }
      : { label: name, stroke: resolved(name), width: index ? 1.5 : 2, points: { show: few, size: 6, fill: resolved(name) }, spanGaps: true },
  );

  // Where the sender gives up: drawn once callers wait half as long, for before that it would only flatten the rest.
  const longest = Math.max(0, ...values.flat().map(Number));
  const limit = Number(box.dataset.limit ?? 0);
  if (!isVolume && limit && longest * 2 >= limit) {
    data.push(at.map(() => limit));
    series.push({ label: "limit", stroke: resolved("limit"), width: 2, dash: [6, 4], points: { show: false } });
  }

  const axis = { stroke: ink, font: `12px ${getComputedStyle(document.body).fontFamily}`, ticks: { show: false } };
  new uPlot(
    {
      width: box.clientWidth,
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), ZONE),
      height: box.clientHeight,
      legend: { show: false },
      cursor: { y: false, points: { show: !isVolume } },
      scales: { x: { range: (_, low, high) => [low - 30 * box.dataset.step, high + 30 * box.dataset.step] }, y: { range: (_, __, high) => [0, Math.max(high * 1.1, isVolume ? 4 : 1)] } },
      axes: [
        { ...axis, grid: { show: false }, gap: 10, space: 80, values: moments },
        { ...axis, grid: { stroke: line, width: 1 }, size: 56, values: (_, marks) => marks.map((mark) => (isVolume ? (Number.isInteger(mark) ? mark.toLocaleString() : "") : `${mark} ms`)) },
      ],
      series: [{}, ...series],
      plugins: [tip(box, names, values, isVolume)],
    },
    [at, ...data],
    box,
  );
}

// In the reader's own way of writing times, and in the zone of the page; the day is written where it begins.
function moments(_, marks, __, ___, step) {
  let before = "";
  return marks.map((mark) => {
    const at = new Date(mark * 1000);
    const day = at.toLocaleDateString(undefined, { day: "numeric", month: "short", timeZone: ZONE });
    const time = at.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", timeZone: ZONE });
    const text = step >= 86400 ? day : day === before ? time : `${time}\n${day}`;
    before = day;
    return text;
  });
}

// The tallest first, so that each lower one is drawn in front of it.
function stacked(values) {
  const sums = values[0].map(() => 0);
  const layers = values.map((one) => one.map((value, index) => (sums[index] += value || 0)));
  return layers.reverse();
}

function bars() {
  return uPlot.paths.bars({ size: [0.78, 40], radius: 0.12 });
}

const WORDS = { accepted: "Accepted", filtered: "Filtered", duplicate: "Duplicate", handshake: "Handshake", rejected: "Rejected", p50: "Median", p95: "95th", p99: "99th" };

// Durations are counted within bounds; the last one is 30 s.
const waited = (bound) => (bound > 30000 ? "> 30,000 ms" : `≤ ${bound.toLocaleString()} ms`);

function tip(box, names, values, isVolume) {
  const bubble = document.createElement("div");
  bubble.className = "tip";
  bubble.hidden = true;
  return {
    hooks: {
      init: (chart) => chart.over.append(bubble),
      setCursor: (chart) => {
        const { idx, left } = chart.cursor;
        bubble.hidden = idx == null || left < 0;
        if (bubble.hidden) return;
        const lines = names.map((name, index) => [name, values[index][idx]]).filter(([, value]) => value);
        bubble.replaceChildren();
        const when = document.createElement("strong");
        when.textContent = new Date(chart.data[0][idx] * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short", timeZone: ZONE });
        bubble.append(when);
        for (const [name, value] of lines.length ? lines : [["", null]]) {
          const row = document.createElement("span");
          row.className = name;
          row.textContent = name ? `${WORDS[name]} ${isVolume ? value.toLocaleString() : waited(value)}` : "No calls";
          bubble.append(row);
        }
        const flip = left > chart.over.clientWidth / 2;
        bubble.style.left = flip ? "" : `${left + 12}px`;
        bubble.style.right = flip ? `${chart.over.clientWidth - left + 12}px` : "";
      },
    },
  };
}
