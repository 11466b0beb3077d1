import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterClientQuotasOptions;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;

/** Does what bare.py does, with Kafka's own client: see the README beside it. */
public final class JavaAdmin {
    private static final int ENTITIES = 2_500;

    public static void main(String[] arguments) throws Exception {
        var desired = readDesired(Path.of(arguments[0]));
        var settings = new Properties();
        settings.put("bootstrap.servers", arguments[1]);
        boolean writes = arguments.length > 2 && arguments[2].equals("apply");
        try (Admin admin = Admin.create(settings)) {
            var current = describe(admin);
            var alterations = compare(desired, current);
            alter(admin, alterations, true);
            if (writes) {
                alter(admin, alterations, false);
                while (!compare(desired, describe(admin)).isEmpty()) {
                    Thread.sleep(20);
                }
            }
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<ClientQuotaEntity, Map<String, Double>> readDesired(Path folder) throws Exception {
        var limits = new LoaderOptions();
        limits.setCodePointLimit(Integer.MAX_VALUE);
        var yaml = new Yaml(new SafeConstructor(limits));
        var desired = new HashMap<ClientQuotaEntity, Map<String, Double>>();
        try (var files = Files.newDirectoryStream(folder, "bench*.yaml")) {
            for (var file : files) {
                Map<String, Object> content = yaml.load(Files.readString(file));
                for (var quota : (List<Map<String, Object>>) content.get("quotas")) {
                    var names = new HashMap<String, String>();
                    var values = new HashMap<String, Double>();
                    quota.forEach((field, value) -> {
                        if (field.equals("limits")) {
                            ((Map<String, Number>) value)
                                .forEach((key, limit) -> values.put(key, limit.doubleValue()));
                        } else {
                            names.put(field, (String) value);
                        }
                    });
                    desired.put(new ClientQuotaEntity(names), values);
                }
            }
        }
        return desired;
    }

    private static Map<ClientQuotaEntity, Map<String, Double>> describe(Admin admin) throws Exception {
        return admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get();
    }

    private static List<ClientQuotaAlteration> compare(
            Map<ClientQuotaEntity, Map<String, Double>> desired,
            Map<ClientQuotaEntity, Map<String, Double>> current) {
        var alterations = new ArrayList<ClientQuotaAlteration>();
        desired.forEach((entity, limits) -> {
            var stored = current.getOrDefault(entity, Map.of());
            var operations = new ArrayList<ClientQuotaAlteration.Op>();
            limits.forEach((key, value) -> {
                if (!value.equals(stored.get(key))) {
                    operations.add(new ClientQuotaAlteration.Op(key, value));
                }
            });
            stored.keySet().stream().filter(key -> !limits.containsKey(key))
                .forEach(key -> operations.add(new ClientQuotaAlteration.Op(key, null)));
            if (!operations.isEmpty()) {
                alterations.add(new ClientQuotaAlteration(entity, operations));
            }
        });
        return alterations;
    }

    private static void alter(Admin admin, List<ClientQuotaAlteration> alterations, boolean validateOnly)
            throws Exception {
        var options = new AlterClientQuotasOptions().validateOnly(validateOnly);
        for (int start = 0; start < alterations.size(); start += ENTITIES) {
            var batch = alterations.subList(start, Math.min(start + ENTITIES, alterations.size()));
            admin.alterClientQuotas(batch, options).all().get();
        }
    }
}
