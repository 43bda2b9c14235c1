/** Entry of the web UI. */
import './styles/index.css';
import { render } from 'preact';
import { App } from './app.js';
import { followScrolling } from './base/scroll.js';

const root = document.getElementById('app');
followScrolling();
if (root) render(<App />, root);
