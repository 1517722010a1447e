package fb;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** What a job needs to build itself. */
public final class Job {
    public final StreamExecutionEnvironment env;
    public final Opt o;
    public final Meter.Conf meter;

    public Job(StreamExecutionEnvironment env, Opt o, Meter.Conf meter) {
        this.env = env;
        this.o = o;
        this.meter = meter;
    }

    public <T> SingleOutputStreamOperator<T> from(SeqSource.Gen<T> g, TypeInformation<T> t) {
        return from(g, t, WatermarkStrategy.noWatermarks());
    }

    public <T> SingleOutputStreamOperator<T> from(
            SeqSource.Gen<T> g, TypeInformation<T> t, WatermarkStrategy<T> w) {
        double secs = o.d("secs", 0);
        // a run that ends by the clock must not run out of records first
        long n = o.l("n", secs > 0 ? 1_000_000_000_000L : 10_000_000);
        var s = new SeqSource<>(
                g, t, n, o.d("rate", 0), (int) o.l("emit", 1), secs, o.l("fast", 0), meter);
        return env.fromSource(s, w, "source", t).uid("source");
    }

    public <T> Sink<T> sink() {
        return o.b("check", false) ? new CheckSink<>(meter) : new CountSink<>(meter);
    }
}
