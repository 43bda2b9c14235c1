/** Pools that a source names. */
import { expect } from 'chai';
import { namedPools } from '../../src/model/named-pools.js';

describe('the pools that a source names', () => {
  it('finds the name of a pool wherever the source makes a handle for it', () => {
    const code = `
      let db = DbPool::new("main-db");
      let cache = RedisPool { pool_id: "cache".to_string() };
      let mail = EmailPool :: new ( String::from("mail") );
      let raw = MongoPool::new(r#"documents"#);
      let store = Storage::database("rows", "table")?; // the second one is no pool
      let c = '"'; let more = FtpPool::new("files"); fn f<'a>(x: &'a str) -> &'a str { x }
      let spread = MemcachedPool::new(
          "spread",
      );`;
    const names = ['cache', 'documents', 'files', 'mail', 'main-db', 'rows', 'spread'];
    expect(namedPools(code)).to.deep.equal(names);
  });

  it('ignores names of pools in comments and strings, and names that are computed', () => {
    const code = `
      // DbPool::new("a")
      /* DbPool::new("b") /* RedisPool::new("c") */ DbPool::new("d") */
      let text = "DbPool::new(\\"e\\")"; let raw = r#"DbPool::new("f")"#;
      let computed = DbPool::new(name); let joined = DbPool::new(&format!("{}-db", x));
      println!("g"); let other = pool("h"); let odd = DbPool::new("i\\n");
      let quote = '\\''; let id = Config { id: "j" };`;
    expect(namedPools(code)).to.deep.equal([]);
  });

  it('looks for names of pools in any text, however long or incomplete', () => {
    for (const code of [
      '',
      '"',
      '/*',
      'r#"',
      "'",
      'DbPool::new("',
      '/*'.repeat(50_000),
      '"\\'.repeat(50_000),
    ])
      expect(namedPools(code)).to.deep.equal([]);
    expect(namedPools(`${'r'.repeat(500_000)} DbPool::new("x")`)).to.deep.equal(['x']);
  });
});
