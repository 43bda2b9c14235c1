/** For the knex command line, e.g. `npm run build && npx knex --knexfile dist/knexfile.js migrate:status`. */
import { loadProcessConfig } from './src/config.js';
import { knexConfig } from './src/store/database.js';

export default knexConfig(loadProcessConfig().DATABASE_URL);
