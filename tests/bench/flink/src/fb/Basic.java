package fb;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.streaming.api.datastream.AsyncDataStream;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.async.ResultFuture;
import org.apache.flink.streaming.api.functions.async.RichAsyncFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/** The jobs map, shuffle, wordcount, window, process, async, latency and state. */
public final class Basic {
    static final TypeInformation<byte[]> BYTES = PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO;

    private Basic() {}

    // ---- map ------------------------------------------------------------------------------

    /** Line i of the pool: 10-digit id, 6-digit user, 13-digit ms, 6-digit amount, padding; 100 bytes. */
    static byte[] line(int i) {
        long r = Rng.mix(i);
        String head = String.format(
                "%010d,%06d,%013d,%06d,", i, Rng.below(r, 1_000_000), 1_700_000_000_000L + i, Rng.below(Rng.mix(r), 1_000_000));
        byte[] b = new byte[100];
        byte[] h = head.getBytes(StandardCharsets.US_ASCII);
        System.arraycopy(h, 0, b, 0, h.length);
        Arrays.fill(b, h.length, 100, (byte) 'x');
        return b;
    }

    static final int POOL = 4096;

    static final class LineGen implements SeqSource.Gen<byte[]> {
        private transient byte[][] pool;

        @Override
        public byte[] at(long i) {
            if (pool == null) {
                pool = new byte[POOL][];
                for (int k = 0; k < POOL; k++) {
                    pool[k] = line(k);
                }
            }
            return pool[(int) (i & (POOL - 1))];
        }
    }

    /** Finds the fourth comma-separated field, scales the number in it by 908/1000, writes a new line. */
    static final class ParseMap implements MapFunction<byte[], byte[]> {
        @Override
        public byte[] map(byte[] in) {
            int at = 0;
            for (int commas = 0; commas < 3; at++) {
                if (in[at] == ',') {
                    commas++;
                }
            }
            long v = 0;
            int end = at;
            for (; in[end] != ','; end++) {
                v = v * 10 + (in[end] - '0');
            }
            v = v * 908 / 1000;
            byte[] out = in.clone();
            for (int k = end - 1; k >= at; k--) {
                out[k] = (byte) ('0' + v % 10);
                v /= 10;
            }
            return out;
        }
    }

    static void map(Job j) {
        j.from(new LineGen(), BYTES).map(new ParseMap()).returns(BYTES).sinkTo(j.sink());
    }

    // ---- shuffle --------------------------------------------------------------------------

    /** 100 bytes: 0..7 the key (big endian), 8..15 i, the rest 0; a new array for each record. */
    static final class PayloadGen implements SeqSource.Gen<byte[]> {
        private final long keys;

        PayloadGen(long keys) {
            this.keys = keys;
        }

        @Override
        public byte[] at(long i) {
            byte[] b = new byte[100];
            Bytes.putLong(b, 0, Rng.below(Rng.mix(i), keys));
            Bytes.putLong(b, 8, i);
            return b;
        }
    }

    static final class Key0 implements KeySelector<byte[], Long> {
        @Override
        public Long getKey(byte[] b) {
            return Bytes.getLong(b, 0);
        }
    }

    static final class Bump implements MapFunction<byte[], byte[]> {
        @Override
        public byte[] map(byte[] b) {
            b[99]++;
            return b;
        }
    }

    static void shuffle(Job j) {
        j.from(new PayloadGen(j.o.l("keys", 1_000_000)), BYTES)
                .keyBy(new Key0(), Types.LONG)
                .map(new Bump())
                .returns(BYTES)
                .sinkTo(j.sink());
    }

    // ---- word count -----------------------------------------------------------------------

    static String word(int w) {
        long r = Rng.mix(1_000_000L + w);
        int len = 4 + (int) (r & 7);
        StringBuilder s = new StringBuilder();
        for (int k = 0; k < len - 3; k++) {
            r = Rng.mix(r);
            s.append((char) ('a' + Rng.below(r, 26)));
        }
        // three base-36 digits make the words distinct
        return s.append(Integer.toString(36 * 36 + w, 36)).toString();
    }

    static final class TextGen implements SeqSource.Gen<String> {
        private final int vocabulary;
        private transient String[] pool;

        TextGen(int vocabulary) {
            this.vocabulary = vocabulary;
        }

        @Override
        public String at(long i) {
            if (pool == null) {
                String[] words = new String[vocabulary];
                for (int k = 0; k < vocabulary; k++) {
                    words[k] = word(k);
                }
                pool = new String[POOL];
                for (int k = 0; k < POOL; k++) {
                    StringBuilder s = new StringBuilder();
                    for (int q = 0; q < 10; q++) {
                        long r = Rng.mix(k * 10L + q);
                        // product of two uniforms: low indices are the frequent words
                        long u = ((r >>> 48) * ((r >>> 32) & 0xffff)) & 0xffffffffL;
                        s.append(q == 0 ? "" : " ").append(words[(int) ((u * vocabulary) >>> 32)]);
                    }
                    pool[k] = s.toString();
                }
            }
            return pool[(int) (i & (POOL - 1))];
        }
    }

    static final class Split implements FlatMapFunction<String, Tuple2<String, Long>> {
        @Override
        public void flatMap(String s, Collector<Tuple2<String, Long>> out) {
            int at = 0;
            int n = s.length();
            while (at < n) {
                int sp = s.indexOf(' ', at);
                if (sp < 0) {
                    sp = n;
                }
                out.collect(Tuple2.of(s.substring(at, sp), 1L));
                at = sp + 1;
            }
        }
    }

    static void wordcount(Job j) {
        j.from(new TextGen((int) j.o.l("vocabulary", 10_000)), Types.STRING)
                .flatMap(new Split())
                .returns(Types.TUPLE(Types.STRING, Types.LONG))
                .keyBy(t -> t.f0, Types.STRING)
                .sum(1)
                .sinkTo(j.sink());
    }

    // ---- window ---------------------------------------------------------------------------

    static final TypeInformation<Tuple3<Long, Long, Long>> KTV = Types.TUPLE(Types.LONG, Types.LONG, Types.LONG);

    /** (key, event time in ms, value); the event-time rate is eps records a second, up to 1 s late. */
    static final class EventGen implements SeqSource.Gen<Tuple3<Long, Long, Long>> {
        private final long keys;
        private final long eps;
        private final int jitterMs;

        EventGen(long keys, long eps, int jitterMs) {
            this.keys = keys;
            this.eps = eps;
            this.jitterMs = jitterMs;
        }

        @Override
        public Tuple3<Long, Long, Long> at(long i) {
            long r = Rng.mix(i);
            long ts = 1_700_000_000_000L + i * 1000 / eps - (r & 0xffff) * jitterMs / 65536;
            return Tuple3.of(Rng.below(r, keys), ts, (r >>> 16) & 0xffff);
        }
    }

    static WatermarkStrategy<Tuple3<Long, Long, Long>> wm() {
        return WatermarkStrategy.<Tuple3<Long, Long, Long>>forBoundedOutOfOrderness(Duration.ofSeconds(1))
                .withTimestampAssigner((t, x) -> t.f1);
    }

    static final class Agg
            implements AggregateFunction<
                    Tuple3<Long, Long, Long>, Tuple3<Long, Long, Long>, Tuple3<Long, Long, Long>> {
        @Override
        public Tuple3<Long, Long, Long> createAccumulator() {
            return Tuple3.of(0L, 0L, Long.MIN_VALUE);
        }

        @Override
        public Tuple3<Long, Long, Long> add(Tuple3<Long, Long, Long> v, Tuple3<Long, Long, Long> a) {
            a.f0 = a.f0 + 1;
            a.f1 = a.f1 + v.f2;
            a.f2 = Math.max(a.f2, v.f2);
            return a;
        }

        @Override
        public Tuple3<Long, Long, Long> getResult(Tuple3<Long, Long, Long> a) {
            return a;
        }

        @Override
        public Tuple3<Long, Long, Long> merge(Tuple3<Long, Long, Long> a, Tuple3<Long, Long, Long> b) {
            return Tuple3.of(a.f0 + b.f0, a.f1 + b.f1, Math.max(a.f2, b.f2));
        }
    }

    static final class Fin
            extends ProcessWindowFunction<
                    Tuple3<Long, Long, Long>, Tuple4<Long, Long, Tuple2<Long, Long>, Long>, Long, TimeWindow> {
        @Override
        public void process(
                Long key,
                Context c,
                Iterable<Tuple3<Long, Long, Long>> in,
                Collector<Tuple4<Long, Long, Tuple2<Long, Long>, Long>> out) {
            Tuple3<Long, Long, Long> a = in.iterator().next();
            out.collect(Tuple4.of(key, c.window().getEnd(), Tuple2.of(a.f0, a.f1), a.f2));
        }
    }

    static void window(Job j) {
        j.from(new EventGen(j.o.l("keys", 100_000), j.o.l("eps", 100_000), 1000), KTV, wm())
                .keyBy(t -> t.f0, Types.LONG)
                .window(TumblingEventTimeWindows.of(Duration.ofSeconds(10)))
                .aggregate(
                        new Agg(),
                        new Fin(),
                        KTV,
                        KTV,
                        Types.TUPLE(Types.LONG, Types.LONG, Types.TUPLE(Types.LONG, Types.LONG), Types.LONG))
                .sinkTo(j.sink());
    }

    // ---- process: a keyed process function with a value and a timer -------------------------------------

    static final class CountTimer extends KeyedProcessFunction<Long, Tuple3<Long, Long, Long>, Tuple2<Long, Long>> {
        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext c) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
        }

        @Override
        public void processElement(Tuple3<Long, Long, Long> v, Context c, Collector<Tuple2<Long, Long>> out)
                throws Exception {
            Long n = count.value();
            if (n == null) {
                n = 0L;
                c.timerService().registerEventTimeTimer(v.f1 + 30_000);
            }
            count.update(n + 1);
        }

        @Override
        public void onTimer(long ts, OnTimerContext c, Collector<Tuple2<Long, Long>> out) throws Exception {
            out.collect(Tuple2.of(c.getCurrentKey(), count.value()));
            count.clear();
        }
    }

    static void process(Job j) {
        j.from(new EventGen(j.o.l("keys", 1_000_000), j.o.l("eps", 100_000), 1000), KTV, wm())
                .keyBy(t -> t.f0, Types.LONG)
                .process(new CountTimer(), Types.TUPLE(Types.LONG, Types.LONG))
                .sinkTo(j.sink());
    }

    // ---- async: a look-up -----------------------------------------------------------------

    static final class Lookup extends RichAsyncFunction<Tuple3<Long, Long, Long>, Tuple3<Long, Long, Long>> {
        private static final class Req {
            final long due;
            final Tuple3<Long, Long, Long> in;
            final ResultFuture<Tuple3<Long, Long, Long>> out;

            Req(long due, Tuple3<Long, Long, Long> in, ResultFuture<Tuple3<Long, Long, Long>> out) {
                this.due = due;
                this.in = in;
                this.out = out;
            }
        }

        private final long delayNs;
        private transient ConcurrentLinkedQueue<Req> q;
        private transient volatile boolean closed;

        Lookup(long delayNs) {
            this.delayNs = delayNs;
        }

        @Override
        public void open(OpenContext c) {
            q = new ConcurrentLinkedQueue<>();
            // The delay is the same for all, so a FIFO queue and one thread are the whole remote server.
            Thread t = new Thread(
                    () -> {
                        while (!closed) {
                            Req r = q.peek();
                            if (r == null) {
                                LockSupport.parkNanos(100_000);
                                continue;
                            }
                            long wait = r.due - System.nanoTime();
                            if (wait > 0) {
                                LockSupport.parkNanos(wait);
                                continue;
                            }
                            q.poll();
                            r.out.complete(java.util.List.of(Tuple3.of(r.in.f0, r.in.f1, r.in.f2 * 2)));
                        }
                    },
                    "fb-lookup");
            t.setDaemon(true);
            t.start();
        }

        @Override
        public void asyncInvoke(Tuple3<Long, Long, Long> v, ResultFuture<Tuple3<Long, Long, Long>> out) {
            q.add(new Req(System.nanoTime() + delayNs, v, out));
        }

        @Override
        public void close() {
            closed = true;
        }
    }

    static void async(Job j) {
        var in = j.from(new EventGen(1_000_000, 100_000, 1000), KTV);
        var f = new Lookup(j.o.l("delay-us", 1000) * 1000);
        int cap = (int) j.o.l("capacity", 1000);
        var out = j.o.b("ordered", true)
                ? AsyncDataStream.orderedWait(in, f, 60, TimeUnit.SECONDS, cap)
                : AsyncDataStream.unorderedWait(in, f, 60, TimeUnit.SECONDS, cap);
        out.returns(KTV).sinkTo(j.sink());
    }

    // ---- latency ------------------------------------------------------------------------------

    static final class StampedGen implements SeqSource.Gen<byte[]> {
        @Override
        public byte[] at(long i) {
            byte[] b = new byte[100];
            Bytes.putLong(b, 0, Rng.below(Rng.mix(i), 1_000_000));
            Bytes.putLong(b, 16, Pace.slot().v);
            Bytes.putLong(b, 8, System.nanoTime());
            return b;
        }
    }

    static void latency(Job j) {
        j.from(new StampedGen(), BYTES)
                .keyBy(new Key0(), Types.LONG)
                .map(new Bump())
                .returns(BYTES)
                .sinkTo(new LatencySink(j.meter, j.o.d("lat-warm", 10)));
    }

    // ---- state: large keyed state ----------------------------------------------------------------------

    /** First every key once in order, then uniformly random ones below "hot". */
    static final class StateGen implements SeqSource.Gen<byte[]> {
        private final long keys;
        private final long hot;

        StateGen(long keys, long hot) {
            this.keys = keys;
            this.hot = hot;
        }

        @Override
        public byte[] at(long i) {
            byte[] b = new byte[100];
            Bytes.putLong(b, 0, i < keys ? i : Rng.below(Rng.mix(i), hot));
            Bytes.putLong(b, 8, i);
            // bytes the compressor of a checkpoint or an SST cannot remove
            for (int k = 16; k < 96; k += 8) {
                Bytes.putLong(b, k, Rng.mix(i * 16 + k));
            }
            return b;
        }
    }

    static final class Store extends RichMapFunction<byte[], byte[]> {
        private final Meter.Conf meter;
        private final long keys;
        private transient ValueState<byte[]> last;
        private transient boolean first;
        private transient long filled;

        Store(Meter.Conf meter, long keys) {
            this.meter = meter;
            this.keys = keys;
        }

        @Override
        public void open(OpenContext c) {
            last = getRuntimeContext().getState(new ValueStateDescriptor<>("last", BYTES));
            first = true;
            Meter.event(meter, "store-open");
        }

        @Override
        public byte[] map(byte[] b) throws Exception {
            byte[] old = last.value();
            if (first) {
                first = false;
                Meter.event(meter, "store-first old=" + (old != null));
            }
            if (Bytes.getLong(b, 8) == keys) {
                Meter.event(meter, "store-filled");
            }
            last.update(b);
            return old == null ? b : old;
        }
    }

    static void state(Job j) {
        long keys = j.o.l("keys", 10_000_000);
        j.from(new StateGen(keys, j.o.l("hot", keys)), BYTES)
                .keyBy(new Key0(), Types.LONG)
                .map(new Store(j.meter, keys))
                .returns(BYTES)
                .uid("store")
                .sinkTo(j.sink());
    }
}
