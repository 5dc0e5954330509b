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

  const {name: pageName, figures, graphs} = JSON.parse(document.getElementById('data').textContent);
  const hidden = new Set();

  // Colours: those of the browser's mode on the page, those of paper in a file.
  const coloursOf = element => {
    const style = getComputedStyle(element);
    return name => style.getPropertyValue(name).trim();
  };
  const paper = document.querySelector('.light');

  // A system that was switched off: its own line goes, or its place on an axis of systems.
  const shown = traces => traces.filter(trace => !hidden.has(trace.name)).map(trace => {
    if (!hidden.size || !trace.y.some(label => hidden.has(label))) return trace;
    const kept = values => values.filter((_, place) => !hidden.has(trace.y[place]));
    const {error_x: whiskers} = trace;
    const error = whiskers && {...whiskers, array: kept(whiskers.array), arrayminus: kept(whiskers.arrayminus)};
    const texts = trace.text && {text: kept(trace.text)};
    return {...trace, x: kept(trace.x), y: kept(trace.y), ...(error && {error_x: error}), ...texts};
  });

  const layoutOf = (layout, colour) => {
    const axis = own => ({
      gridcolor: colour('--line'), linecolor: colour('--line'), zerolinecolor: colour('--line'),
      fixedrange: true, automargin: true, ...own, title: {standoff: 10, ...own.title},
    });
    return {
      font: {color: colour('--ink'), family: 'system-ui, sans-serif', size: 13},
      paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
      margin: {l: 10, r: 14, t: 10, b: 10}, height: 320, showlegend: false, dragmode: false,
      hoverlabel: {bgcolor: colour('--panel'), bordercolor: colour('--line'), font: {color: colour('--ink')}},
      ...layout, xaxis: axis(layout.xaxis), yaxis: axis(layout.yaxis),
    };
  };

  const draw = () => {
    const colour = coloursOf(document.documentElement);
    for (const [name, {traces, layout}] of Object.entries(figures)) {
      Plotly.react(name, shown(traces), layoutOf(layout, colour), {responsive: true, displayModeBar: false});
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
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);

  // Figures as files: made here, on white, without asking anybody.
  const bytesOf = url => Uint8Array.from(atob(url.slice(url.indexOf(',') + 1)), sign => sign.charCodeAt(0));

  const plotImage = async (name, format) => {
    const {title, traces, layout} = figures[name];
    const colour = coloursOf(paper);
    const own = layoutOf(layout, colour);
    const url = await Plotly.toImage({
      data: shown(traces),
      layout: {
        ...own, showlegend: traces.length > 1, title: {text: title, x: 0.02, font: {size: 16}},
        margin: {l: 20, r: 20, t: 50, b: 20}, paper_bgcolor: colour('--paper'),
      },
    }, {format, width: 860, height: own.height + 180, scale: format === 'png' ? 2 : 1});
    if (format === 'png') return new Blob([bytesOf(url)], {type: 'image/png'});
    return new Blob([decodeURIComponent(url.slice(url.indexOf(',') + 1))], {type: 'image/svg+xml'});
  };

  const drawnSvg = name => {
    const svg = document.querySelector(`#${CSS.escape(name)} svg`).cloneNode(true);
    const [, , width, height] = svg.getAttribute('viewBox').split(' ').map(Number);
    const colour = coloursOf(paper);
    svg.setAttribute('width', 2 * width);
    svg.setAttribute('height', 2 * height);
    const ground = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
    for (const [key, value] of Object.entries({width: '100%', height: '100%', fill: colour('--paper')})) {
      ground.setAttribute(key, value);
    }
    svg.prepend(ground);
    return new XMLSerializer().serializeToString(svg).replace(/var\((--[\w-]+)\)/g, (_, name) => colour(name));
  };

  const pictureImage = async (name, format) => {
    const text = drawnSvg(name);
    if (format === 'svg') return new Blob([text], {type: 'image/svg+xml'});
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
    await image.decode();
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
    // toBlob would wait until the browser has nothing else to do.
    return new Blob([bytesOf(canvas.toDataURL('image/png'))], {type: 'image/png'});
  };

  const csvOf = rows => {
    const cell = value => {
      const text = value === null || value === undefined ? '' : String(value);
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return rows.map(row => row.map(cell).join(',')).join('\r\n') + '\r\n';
  };

  const plotRows = name => {
    const {traces, layout} = figures[name];
    const title = which => layout[`${which}axis`].title?.text ?? 'system';
    const uncertain = ['x', 'y'].filter(which => traces.some(trace => trace[`error_${which}`]));
    const ends = uncertain.flatMap(which => [`${title(which)}, interval from`, `${title(which)}, interval to`]);
    const rows = [['series', title('x'), title('y'), ...ends]];
    for (const trace of traces) {
      trace.x.forEach((x, place) => rows.push([trace.name, x, trace.y[place], ...uncertain.flatMap(which => {
        const [value, spread] = [trace[which][place], trace[`error_${which}`]];
        const ends = spread ? [value - spread.arrayminus[place], value + spread.array[place]] : ['', ''];
        return ends.map(end => end === '' ? '' : Number(end.toFixed(6)));
      })]));
    }
    return rows;
  };

  const linkRows = name => {
    const {nodes, links} = graphs[name];
    const header = ['node', 'topic of the node', 'relay', 'peer', 'topic of the peer', 'relay'];
    return [header, ...links.map(([a, b]) => [...nodes[a], ...nodes[b]])];
  };

  const fileOf = async (name, format) => {
    if (format === 'csv') {
      return new Blob([csvOf(name in figures ? plotRows(name) : linkRows(name))], {type: 'text/csv'});
    }
    return name in figures ? plotImage(name, format) : pictureImage(name, format);
  };

  const status = document.getElementById('status');
  for (const button of document.querySelectorAll('.export button')) {
    button.addEventListener('click', async () => {
      const {figure, format} = button.dataset;
      const file = `${pageName}-${figure}.${format}`;
      const link = document.createElement('a');
      link.href = URL.createObjectURL(await fileOf(figure, format));
      link.download = file;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      status.textContent = `${file} is ready`;
    });
  }

  draw();
})();
