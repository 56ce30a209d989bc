import static dev.langchain4j.data.message.ChatMessageDeserializer.messagesFromJson;
import static dev.langchain4j.data.message.ChatMessageSerializer.messagesToJson;

import dev.langchain4j.data.message.ChatMessage;
import dev.langchain4j.store.memory.chat.ChatMemoryStore;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Keeps the memories of a LangChain4j service on a chatmemory server. */
public class HttpChatMemoryStore implements ChatMemoryStore {

    // HTTP/1.1, since the client would otherwise ask for an upgrade to HTTP/2 with each request.
    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final String baseUrl;
    private final String token;

    /** @param baseUrl such as https://chat.example.org */
    public HttpChatMemoryStore(String baseUrl, String token) {
        this.baseUrl = baseUrl.replaceAll("/+$", "");
        this.token = token;
    }

    @Override
    public List<ChatMessage> getMessages(Object memoryId) {
        return messagesFromJson(send("GET", memoryId, BodyPublishers.noBody()));
    }

    @Override
    public void updateMessages(Object memoryId, List<ChatMessage> messages) {
        send("PUT", memoryId, BodyPublishers.ofString(messagesToJson(messages)));
    }

    @Override
    public void deleteMessages(Object memoryId) {
        send("DELETE", memoryId, BodyPublishers.noBody());
    }

    private String send(String method, Object memoryId, BodyPublisher body) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(baseUrl + "/api/v1/store/" + address(memoryId) + "/"))
                .header("Authorization", "Bearer " + token)
                .header("Content-Type", "application/json")
                .method(method, body)
                .build();
        try {
            HttpResponse<String> response = client.send(request, BodyHandlers.ofString());
            if (response.statusCode() >= 300) {
                throw new IllegalStateException(method + " " + request.uri() + ": " + response.body());
            }
            return response.body();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }

    /** The id as one segment of a path: every byte but letters, digits, '-', '_' and '.' becomes ~XX. */
    static String address(Object memoryId) {
        String id = memoryId.toString();
        if (id.equals(".") || id.equals("..")) {
            return id.replace(".", "~2E");
        }
        StringBuilder segment = new StringBuilder();
        for (byte b : id.getBytes(StandardCharsets.UTF_8)) {
            boolean plain = b > 0 && (Character.isLetterOrDigit(b) || "-_.".indexOf(b) >= 0);
            segment.append(plain ? String.valueOf((char) b) : String.format("~%02X", b & 0xFF));
        }
        return segment.toString();
    }
}
