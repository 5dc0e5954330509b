"""The style and the script of a page; both go into it, so that it opens without a network."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --panel: #f6f7f9; --ink: #1c2128; --faint: #59636e; --line: #d5d9df;
  --best: #0b6b3a; --worst: #a8321a; --accent: #1f6fc9;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171b; --panel: #1c2026; --ink: #e4e7eb; --faint: #9aa4af; --line: #343a43;
    --best: #5ccb8c; --worst: #f08a6e; --accent: #6fb1f5;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 76rem;
  background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif;
}
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 0 0 .2rem; }
.about, figcaption, .note { color: var(--faint); font-size: .9rem; }
.about { margin: 0 0 1.2rem; }
.findings { margin: 0; padding: .9rem 1.1rem .9rem 2rem; background: var(--panel); border-radius: .5rem; }
.findings li { margin: .3rem 0; }
.findings li:first-child { font-weight: 600; }
.wide { overflow-x: auto; border: 1px solid var(--line); border-radius: .5rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .45rem .45rem; text-align: right; white-space: nowrap; }
thead th { vertical-align: bottom; background: var(--panel); border-bottom: 1px solid var(--line); padding: 0; }
thead button {
  font: inherit; font-weight: 600; color: inherit; background: none; border: 0; cursor: pointer;
  width: 100%; padding: .45rem .45rem; text-align: right; line-height: 1.2; white-space: nowrap;
}
thead small { display: block; font-weight: 400; color: var(--faint); }
thead i { font-style: normal; font-weight: 400; color: var(--faint); }
thead i::after { content: "\\2195"; }
thead th[aria-sort="ascending"] i::after { content: "\\2191"; color: var(--accent); }
thead th[aria-sort="descending"] i::after { content: "\\2193"; color: var(--accent); }
tbody tr + tr > * { border-top: 1px solid var(--line); }
th:first-child, thead th:first-child button { text-align: left; padding-left: .8rem; }
thead th:first-child { padding-left: 0; }
th:first-child { position: sticky; left: 0; background: var(--paper); }
thead th:first-child { background: var(--panel); }
tbody th { font-weight: 600; white-space: normal; overflow-wrap: anywhere; min-width: 7.5rem; }
.best { color: var(--best); font-weight: 600; }
.worst { color: var(--worst); }
.best::before { content: "\\25B4\\00A0"; }
.worst::before { content: "\\25BE\\00A0"; }
.legend { display: flex; flex-wrap: wrap; gap: .4rem; margin: 0 0 1rem; padding: 0; list-style: none; }
.legend button {
  font: inherit; font-size: .9rem; color: inherit; cursor: pointer; padding: .25rem .7rem;
  background: var(--panel); border: 1px solid var(--line); border-radius: 1rem; overflow-wrap: anywhere;
}
.legend button[aria-pressed="false"] { opacity: .45; text-decoration: line-through; }
.stroke { display: inline-block; width: 1.4rem; border-top: 3px solid; vertical-align: .28em; margin-right: .4rem; }
.figures { display: grid; gap: 1.2rem; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); }
figure { margin: 0; padding: .9rem; border: 1px solid var(--line); border-radius: .5rem; min-width: 0; }
figure.full { grid-column: 1 / -1; }
.plot { width: 100%; min-height: 320px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: 0; }
dt { color: var(--faint); }
dd { margin: 0; overflow-wrap: anywhere; }
details { margin: .4rem 0; }
summary { cursor: pointer; }
pre {
  background: var(--panel); padding: .7rem .9rem; border-radius: .5rem; margin: .5rem 0;
  white-space: pre-wrap; overflow-wrap: anywhere; font-size: .88rem;
}
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
@media (max-width: 34rem) {
  body { padding: 1rem .7rem 2rem; }
  figure { padding: .6rem; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; }
}
"""

SCRIPT = """
'use strict';
(() => {
  // Sort a table by the column whose heading was pressed; once more turns it round. What has no value stays last.
  for (const table of document.querySelectorAll('table.sortable')) {
    const body = table.tBodies[0];
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, place) => heading.querySelector('button').addEventListener('click', () => {
      const rising = heading.getAttribute('aria-sort') !== 'ascending';
      const key = row => row.cells[place].dataset.value;
      const compare = (a, b) => {
        if (key(a) === '' || key(b) === '') return (key(a) === '') - (key(b) === '');
        const order = place === 0 ? key(a).localeCompare(key(b)) : key(a) - key(b);
        return rising ? order : -order;
      };
      headings.forEach(other => other.setAttribute('aria-sort', 'none'));
      heading.setAttribute('aria-sort', rising ? 'ascending' : 'descending');
      body.append(...[...body.rows].sort(compare));
    }));
  }

  const figures = JSON.parse(document.getElementById('figures').textContent);
  const hidden = new Set();
  const dark = window.matchMedia('(prefers-color-scheme: dark)');

  const draw = () => {
    const style = getComputedStyle(document.documentElement);
    const colour = name => style.getPropertyValue(name).trim();
    const axis = own => ({
      gridcolor: colour('--line'), linecolor: colour('--line'), zerolinecolor: colour('--line'),
      fixedrange: true, automargin: true, ...own, title: {standoff: 10, ...own.title},
    });
    for (const [name, {traces, layout}] of Object.entries(figures)) {
      const shown = traces.map(trace => ({...trace, visible: !hidden.has(trace.name)}));
      Plotly.react(name, shown, {
        font: {color: colour('--ink'), family: 'system-ui, sans-serif', size: 13},
        paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
        margin: {l: 10, r: 10, t: 10, b: 10}, height: 320, showlegend: false, dragmode: false,
        hoverlabel: {bgcolor: colour('--panel'), bordercolor: colour('--line'), font: {color: colour('--ink')}},
        ...layout, xaxis: axis(layout.xaxis), yaxis: axis(layout.yaxis),
      }, {responsive: true, displayModeBar: false});
    }
  };

  for (const button of document.querySelectorAll('.legend button')) {
    button.addEventListener('click', () => {
      const name = button.dataset.name;
      if (!hidden.delete(name)) hidden.add(name);
      button.setAttribute('aria-pressed', String(!hidden.has(name)));
      draw();
    });
  }
  dark.addEventListener('change', draw);
  draw();
})();
"""
